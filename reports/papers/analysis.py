"""The setting of a figure, and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib.figure

from vcl_radial.reporting.blocks import Claim
from vcl_radial.reporting.figures.drawing import Curve


@dataclass(frozen=True)
class Setting:
    """The setting of a figure.

    Attributes:
        seed: seed of all random numbers.
        quick: whether to compute coarsely, in under 20 seconds.
        data_dir: the folder of image data that was named on the command line.
        say: called with each line of progress; the default ignores it.
        command: the text of the command, to store with the results.
        seeds: number of seeds of trained networks, from `seed` on.
        methods: methods of the runs of a figure; none for all.
        settings: keys and values of `--set`, for figures whose runs have them.
        out: the folder of runs.
        device: device of runs, "cpu" or "cuda".
        jobs: runs at a time; None for one per core.
    """

    seed: int = 0
    quick: bool = False
    data_dir: Path | None = None
    say: Callable[[str], None] = field(default=lambda line: None, compare=False)
    command: str = "python -m reports"
    seeds: int = 3
    methods: Sequence[str] = field(default=(), compare=False)
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)
    out: Path = Path("runs")
    device: str = "cpu"
    jobs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A figure that is computed and drawn, and the texts of a page about it.

    Attributes:
        title: title of picture and page.
        source: the published figures.
        shown: description of the picture and of its computation, in paragraphs.
        settings: names and values of the settings: sizes, data, learning rates.
        claims: published claims beside our results.
        notes: further observations, with numbers.
        curves: the numbers behind the picture.
        figure: the picture.
    """

    title: str
    source: str
    shown: Sequence[str]
    settings: Sequence[tuple[str, str]]
    claims: Sequence[Claim]
    notes: Sequence[str] = ()
    curves: Sequence[Curve]
    figure: matplotlib.figure.Figure

    @property
    def findings(self) -> dict[str, Any]:
        """The texts by name, which `NAME.json` holds with their origin."""
        return {name: v for name, v in vars(self).items() if name not in ("curves", "figure")}
