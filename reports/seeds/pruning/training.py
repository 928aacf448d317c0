"""The part of the training that all networks to be pruned share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from reports.seeds.pruning.settings import NUMBERS, PruningSpec
from vcl_radial.runs.training import Step


class PruningTraining:
    """A network in training, and the numbers of the pruned network.

    Attributes:
        run: the run.
        report: function that reports progress between steps.
        numbers: plain numbers by name, once the network is pruned.
        seconds: seconds of the training so far.
    """

    def __init__(self, run: PruningSpec, report: Callable[[Step], None]) -> None:
        self.run, self.report = run, report
        self.numbers: dict[str, Any] = {}
        self.seconds = 0.0

    def files(self) -> dict[str, str]:
        """The result file with the numbers."""
        return {NUMBERS: json.dumps(self.numbers, indent=1) + "\n"}

    def kept(self) -> dict[str, Any]:
        """Return no tensors: only the numbers are kept."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Seconds of the training."""
        return {"seconds": self.seconds}
