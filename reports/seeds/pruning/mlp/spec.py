"""The networks of the BAdam paper's Fig. 2: an MLP on MNIST with two hidden layers of 400 units.

Of the methods beside BAdam the paper states no settings; ours are here. `mlp_training` trains and
prunes; it is imported late, so that settings are refused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reports.seeds.pruning.track import Pruning, PruningSpec
from vcl_radial.config.ranges import CountOrZero, ShareBelowOne
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.settings import Settings
from vcl_radial.runs.training import Step
from vcl_radial.tracks.continual.settings import Recipe

if TYPE_CHECKING:
    from reports.seeds.pruning.mlp.training import MLPTraining


class MLPData(Settings):
    """The images.

    Attributes:
        dataset: its name.
    """

    dataset: Literal["mnist", "fashion-mnist", "digits"] = "mnist"


class MLPRecipe(Recipe):
    """As for any run of the suite, with dropout.

    Attributes:
        dropout: the rate in the hidden layers, in training.
        mask_samples: masks of a prediction; 0 predicts without dropout.
    """

    dropout: ShareBelowOne = 0.0
    mask_samples: CountOrZero = 0


class MLPSpec(PruningSpec):
    """One MLP."""

    TRACK = f"{__name__}:MLPPruning"

    data: MLPData
    recipe: MLPRecipe


class MLPPruning(Pruning[MLPSpec]):
    """An MLP pruned by the signal-to-noise ratio of its weights (BAdam, Fig. 2)."""

    spec = MLPSpec
    worker_modules = (*Pruning.worker_modules, f"{__package__}.training")

    def check_data(self, runs: Sequence[MLPSpec], data_dir: Path | None) -> None:
        """Load the images."""
        from reports.seeds.pruning.mlp.training import load_stream

        load_stream(runs[0].data.dataset, data_dir)

    def open(
        self, run: MLPSpec, context: RunContext, report: Callable[[Step], None]
    ) -> MLPTraining:
        """A network at its start."""
        from reports.seeds.pruning.mlp.training import MLPTraining, load_stream

        stream = load_stream(run.data.dataset, context.data_dir)
        return MLPTraining(run, stream.to(context.device), report)
