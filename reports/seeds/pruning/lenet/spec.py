"""LeNet-5 with an RDP, trained and pruned: its settings, and its runs.

`lenet_training` trains and prunes; it is imported late, so that settings are refused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from reports.seeds.pruning.track import Pruning, PruningSpec
from vcl_radial.config.ranges import Count, NotNegative, Positive
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.settings import Settings
from vcl_radial.runs.training import Step

if TYPE_CHECKING:
    from reports.seeds.pruning.lenet.training import LeNetTraining

_Share = Annotated[float, Field(gt=0, lt=1)]


class LeNetData(Settings):
    """The images.

    Attributes:
        dataset: its name.
        validation: the share of the training images that cuts are chosen on.
    """

    dataset: Literal["mnist", "digits"] = "mnist"
    validation: _Share = 0.1


class LeNetRecipe(Settings):
    """How a network is trained and pruned.

    Attributes:
        epochs: number of epochs of the posterior.
        batch_size: images in a step; an incomplete batch is left out.
        learning_rate: Adam's, of directions and biases; falls to 0 as a cosine.
        radius_learning_rate: Adam's, of log radii, their scales and concentrations; likewise.
        length: see `RDPStart`.
        spread: see `RDPStart`.
        prior_scale: see `RDPStart`.
        prior_length: see `RDPStart`.
        tolerance: largest rise of the validation error by pruning, in percentage points.
        eval_samples: weight draws of the predictive distribution of the whole network.
    """

    epochs: Count = 20
    batch_size: Count = 128
    learning_rate: Positive = 1e-3
    radius_learning_rate: Positive = 2e-2
    length: _Share = 0.97
    spread: Positive = 0.03
    prior_scale: Positive = 1e-5
    prior_length: _Share = 0.9
    tolerance: NotNegative = 0.2
    eval_samples: Count = 5


class LeNetSpec(PruningSpec):
    """One LeNet-5."""

    TRACK = f"{__name__}:LeNetPruning"

    data: LeNetData
    recipe: LeNetRecipe


class LeNetPruning(Pruning[LeNetSpec]):
    """LeNet-5 pruned by the radii of its rows and columns (RDP, Table 2)."""

    spec = LeNetSpec
    worker_modules = (*Pruning.worker_modules, f"{__package__}.training")

    def check_data(self, runs: Sequence[LeNetSpec], data_dir: Path | None) -> None:
        """Load the images."""
        import torch

        from reports.seeds.pruning.lenet.training import load_images

        load_images(runs[0].data, data_dir, torch.device("cpu"))

    def open(
        self, run: LeNetSpec, context: RunContext, report: Callable[[Step], None]
    ) -> LeNetTraining:
        """A network at its start."""
        import torch

        from reports.seeds.pruning.lenet.training import LeNetTraining, load_images

        images = load_images(run.data, context.data_dir, torch.device(context.device))
        return LeNetTraining(run.recipe, run.seed, images)
