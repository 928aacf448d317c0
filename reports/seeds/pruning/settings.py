"""Settings of the prunings: the networks, their training, and how weights or units are chosen."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from vcl_radial.config.ranges import Count, CountOrZero, NotNegative, Positive, ShareBelowOne
from vcl_radial.runs.keys import Key
from vcl_radial.runs.settings import Settings
from vcl_radial.runs.spec import RunSpec
from vcl_radial.tracks.continual.settings import Recipe

NUMBERS = "numbers.json"
"""The result file of a run: plain numbers by name."""

_Share = Annotated[float, Field(gt=0, lt=1)]


class PruningSpec(RunSpec):
    """One network, trained and pruned."""

    FILES: ClassVar[tuple[str, ...]] = (NUMBERS,)

    data: Any
    recipe: Any


class LeNetData(Settings):
    """The images of LeNet-5.

    Attributes:
        dataset: name of the data set.
        validation: fraction of the training images on which the cuts are chosen.
    """

    dataset: Literal["mnist", "digits"] = "mnist"
    validation: _Share = 0.1


class LeNetRecipe(Settings):
    """Training and pruning of LeNet-5.

    Attributes:
        epochs: number of epochs of the posterior.
        batch_size: images in a step; an incomplete batch is left out.
        learning_rate: Adam's learning rate for directions and biases.
        radius_learning_rate: Adam's learning rate for log radii, their scales and concentrations.
        length: initial length of the mean directions.
        spread: initial standard deviation of the logarithm of each factor of a squared radius.
        prior_scale: gamma of the half-Cauchy prior.
        prior_length: length of the prior's mean directions; the directions are the posterior's.
        tolerance: largest rise of the validation error by pruning, in percentage points.
        eval_samples: weight draws of the predictive distribution of the whole network.
        schedule: the learning rates over the steps: "cosine" to 0, or "constant".
        best_of: the last epochs, of which the one with the lowest training cross-entropy is pruned;
            the paper has 10, 1 is the last epoch.
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
    schedule: Literal["cosine", "constant"] = Key(
        "cosine", "of the learning rates", digest="unless default"
    )
    best_of: Count = Key(1, "last epochs, of which the best is pruned", digest="unless default")


class LeNetSpec(PruningSpec):
    """One LeNet-5."""

    TRACK = "reports.seeds.pruning.track:LeNetPruning"

    data: LeNetData
    recipe: LeNetRecipe


class MLPData(Settings):
    """The images of the MLP.

    Attributes:
        dataset: name of the data set.
    """

    dataset: Literal["mnist", "fashion-mnist", "digits"] = "mnist"


class MLPRecipe(Recipe):
    """A recipe of the suite, with dropout.

    Attributes:
        dropout: dropout rate of the hidden layers in training.
        mask_samples: number of masks in a prediction; 0 predicts without dropout.
    """

    dropout: ShareBelowOne = 0.0
    mask_samples: CountOrZero = 0


class MLPSpec(PruningSpec):
    """One MLP."""

    TRACK = "reports.seeds.pruning.track:MLPPruning"

    data: MLPData
    recipe: MLPRecipe
