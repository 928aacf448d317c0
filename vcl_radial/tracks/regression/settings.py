"""The validated keys of a regression method's recipe; `baselines/regression/*.toml` and `--set`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vcl_radial.runs.settings import Count, Positive, Settings


class Recipe(Settings):
    """How a method trains and predicts.

    Attributes:
        method: which; see `vcl_radial.tracks.regression.methods`.
        posterior: of `variational`; "rdp" has radius and direction in the hidden layers, a
            mean-field Gaussian in the last one.
        grouping: which weights share a radius.
        initial_noise: the standard deviation of one weight's noise at the start.
        prior_scale: weights have the prior N(0, prior_scale^2); of rdp, the half-Cauchy's gamma.
        dropout: the rate, of `dropout`.
        members: networks, of `ensemble`.
        noise_shape: of the Gamma prior of the noise precision, in standardised units.
        noise_rate: of the same.
        initial_precision: where the mean of the noise precision starts.
        hidden: units of the hidden layer; None for what the set is compared with.
        learning_rate: of Adam.
        batch_size: rows of a batch.
        steps: of Adam.
        train_samples: weight samples of a step.
        eval_samples: weight samples of a prediction.
    """

    method: Literal["variational", "dropout", "ensemble", "laplace", "badam", "linear"]
    posterior: Literal["gaussian", "radial", "rdp"] = "gaussian"
    grouping: Literal["layer", "tensor", "unit"] = "layer"
    initial_noise: Positive = 0.0025
    prior_scale: Positive = 1.0
    dropout: Annotated[float, Field(gt=0, lt=1)] = 0.05
    members: Count = 5
    noise_shape: Positive = 1.0
    noise_rate: Positive = 1e-3
    initial_precision: Positive = 1.0
    hidden: Count | None = None
    learning_rate: Positive = 1e-3
    batch_size: Count = 64
    steps: Count = 20_000
    train_samples: Count = 1
    eval_samples: Count = 200


MAY_DIFFER = {
    "prior_scale",
    "dropout",
    "noise_shape",
    "noise_rate",
    "initial_precision",
    "learning_rate",
}
"""Keys in which lanes of one program may differ; the others make its shape."""


def shape(recipe: Recipe) -> str:
    """What the recipes of one program have in common."""
    # The draws of a von Mises-Fisher direction depend on who else is in the program.
    apart = set() if recipe.posterior == "rdp" else MAY_DIFFER
    return recipe.model_dump_json(exclude=apart)
