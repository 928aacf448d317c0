"""The validated keys of a regression benchmark's data and of a method's recipe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from vcl_radial.runs.settings import Count, Positive, Settings
from vcl_radial.runs.spec import RunSpec
from vcl_radial.tracks.recipe import StepRecipe

CARRIED = ("variational", "linear")
"""Methods whose posterior can be the prior of the next slice."""

WEIGHTED = ("variational", "dropout")
"""Methods whose objective has a KL between posterior and prior."""


class DataSettings(Settings):
    """The table of one run; which split of it is learned from, the seed says.

    Attributes:
        set: a name of `vcl_radial.tracks.regression.files.FOLDERS`, "diabetes", or a folder of the
            user's in `uci/`. A benchmark names several of them as `sets`.
        table: in place of a set: a CSV file of the user's.
        target: the column of the table that is predicted from the others.
        splits: of the table, at random.
        validation: the share of a split's training rows that settings are chosen on.
        slices: of input space, that are learned from one after another; None for all rows at once.
        checksum: of the files; a command fills it in.
    """

    set: str | None = None
    table: str | None = None
    target: str | None = None
    splits: Count | None = None
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    slices: Count | None = None
    checksum: str | None = None

    @model_validator(mode="after")
    def _one_table(self) -> DataSettings:
        if (self.set is None) == (self.table is None):
            raise ValueError("data: name either sets or a table")
        if (self.table is None) != (self.target is None):
            raise ValueError("data: a table and its target go together; name both or neither")
        if (self.table is None) != (self.splits is None):
            raise ValueError("data: splits are those of a table; a set brings its own")
        return self

    @property
    def name(self) -> str:
        """Of the set, or of the table's file without its ending."""
        return table_name(self.model_dump())


def table_name(data: Mapping[str, Any]) -> str:
    """The name of the set that data name, or of the table's file without its ending."""
    return str(data.get("set") or Path(str(data.get("table"))).name.split(".")[0])


class Recipe(StepRecipe):
    """How a method trains and predicts.

    Attributes:
        method: which; see `vcl_radial.tracks.regression.methods`.
        posterior: of `variational`; "rdp" has radius and direction in the hidden layers, a
            mean-field Gaussian in the last one.
        grouping: which weights share a radius.
        initial_noise: the standard deviation of one weight's noise at the start.
        prior_scale: weights have the prior N(0, prior_scale^2); of rdp, the half-Cauchy's gamma.
        kl_weight: of the KL, in the methods of `WEIGHTED`; 1 is the evidence lower bound.
        dropout: the rate, of `dropout`.
        members: networks, of `ensemble`.
        noise_shape: of the Gamma prior of the noise precision, in standardised units.
        noise_rate: of the same.
        initial_precision: where the mean of the noise precision starts.
        hidden: units of the hidden layers; None for what the set is compared with.
        learning_rate: of Adam.
        batch_size: rows of a batch.
        steps: of Adam; in a sequence, of each slice.
        train_samples: weight samples of a step.
        eval_samples: weight samples of a prediction.
    """

    method: Literal["variational", "dropout", "ensemble", "laplace", "badam", "linear"]
    posterior: Literal["gaussian", "radial", "rdp"] = "gaussian"
    grouping: Literal["layer", "tensor", "unit"] = "layer"
    initial_noise: Positive = 0.0025
    prior_scale: Positive = 1.0
    kl_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    dropout: Annotated[float, Field(gt=0, lt=1)] = 0.05
    members: Count = 5
    noise_shape: Positive = 1.0
    noise_rate: Positive = 1e-3
    initial_precision: Positive = 1.0
    hidden: Annotated[list[Count], Field(min_length=1)] | None = None
    learning_rate: Positive = 1e-3
    batch_size: Count = 64
    steps: Count = 20_000
    train_samples: Count = 1
    eval_samples: Count = 200

    @model_validator(mode="after")
    def _has_kl(self) -> Recipe:
        if self.kl_weight != 1 and self.method not in WEIGHTED:
            raise ValueError(
                f"kl_weight = {self.kl_weight:g}: the method {self.method!r} has no KL; leave it "
                "out"
            )
        return self


MAY_DIFFER = {
    "prior_scale",
    "kl_weight",
    "dropout",
    "noise_shape",
    "noise_rate",
    "initial_precision",
    "learning_rate",
}
"""Keys in which lanes of one program may differ; the others make its shape."""


class Run(RunSpec):
    """One method on one split of one table; the seed is the split."""

    TRACK: ClassVar[str] = "regression"
    FILES: ClassVar[tuple[str, ...]] = ("scores.csv",)

    data: DataSettings
    recipe: Recipe

    @model_validator(mode="after")
    def _can_be_carried(self) -> Run:
        if self.data.slices is not None and self.recipe.method not in CARRIED:
            raise ValueError(
                f"data.slices: the method {self.recipe.method!r} has no posterior that can be "
                "carried from slice to slice; leave one of the two out"
            )
        return self

    @property
    def label(self) -> str:
        """The set, and whether it comes in slices."""
        slices = self.data.slices
        how = "" if slices is None else " at once" if slices == 1 else f" in {slices} slices"
        return f"{self.data.name}{how}  {self.method} seed {self.seed}"

    @property
    def steps(self) -> int:
        """Of Adam, in all."""
        return self.recipe.steps * (self.data.slices or 1)

    def shape(self) -> str:
        """What runs have in common that can be lanes of one program."""
        # The half-Cauchy prior has one scale for all lanes.
        free = MAY_DIFFER - {"prior_scale"} if self.recipe.posterior == "rdp" else MAY_DIFFER
        return self.model_dump_json(exclude={"method": True, "seed": True, "recipe": free})
