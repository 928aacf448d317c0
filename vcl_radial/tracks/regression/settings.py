"""The validated keys of a regression benchmark's data and of a method's recipe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, model_validator

from vcl_radial.config.ranges import Count, Positive, ShareBelowOne
from vcl_radial.runs.keys import Key, declared
from vcl_radial.runs.settings import Settings
from vcl_radial.tracks.recipe import MethodRecipe, MethodRun, one_of
from vcl_radial.tracks.regression import files, lanes

if TYPE_CHECKING:
    from vcl_radial.tracks.regression.lane_method import LaneMethod


class DataSettings(Settings):
    """The table of one run; the seed is the number of the split.

    Attributes:
        set: a name of `vcl_radial.tracks.regression.files.FOLDERS`, "diabetes", or a user's folder
            in `uci/`. A benchmark names several of them as `sets`.
        table: a user's CSV file, in place of a set.
        target: the column of the table that is predicted from the others.
        splits: number of random splits of the table.
        validation: the share of a split's training rows on which settings are chosen.
        slices: number of slices of input space, learned in turn; None for all rows at once.
        uncertainty: whether 90 % intervals are scored; no run then trains on the share
            `validation` of the training rows, which calibrates them. By default no.
        checksum: checksum of the files; a command fills it in.
    """

    set: str | None = None
    table: str | None = None
    target: str | None = None
    splits: Count | None = None
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    slices: Count | None = None
    uncertainty: bool | None = None
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
    def held_out(self) -> float | None:
        """The share of the training rows that calibrates intervals; None if none are scored."""
        return self.validation if self.uncertainty else None

    @property
    def name(self) -> str:
        """The name of the set, or of the table's file without its ending."""
        return table_name(self.model_dump())


def table_name(data: Mapping[str, Any]) -> str:
    """The name of the set in data, or of the table's file without its ending."""
    return str(data.get("set") or Path(str(data.get("table"))).name.split(".")[0])


class Recipe(MethodRecipe):
    """How a method trains and predicts.

    The strategy is any method that serves numbers; methods of `vcl_radial.tracks.regression.lanes`
    train many splits as one program. There "rdp_vcl" has radius and direction in the hidden layers
    and a mean-field Gaussian in the last one, and `prior_scale` is the half-Cauchy's gamma. The
    default of `prior_length` is from the authors' code for regression.
    """

    prior_length: ShareBelowOne = 0.5
    noise_shape: Positive = Key(
        1.0,
        "shape of the Gamma prior of the noise precision, in standardised units",
        lanes="may differ",
    )
    noise_rate: Positive = Key(1e-3, "rate of the same prior", lanes="may differ")
    initial_precision: Positive = Key(
        1.0, "initial mean of the noise precision", lanes="may differ"
    )
    hidden: Annotated[list[Count], Field(min_length=1)] | None = Key(
        None, "units of the hidden layers; None for those of the published results"
    )
    learning_rate: Positive = Key(1e-3, "step size of the optimiser", lanes="may differ")
    batch_size: Count = Key(64, "rows of a batch")
    steps: Count = Key(20_000, "steps of Adam; in a sequence, of each slice")
    train_samples: Count = Key(1, "weight samples of a step")
    eval_samples: Count = Key(200, "weight samples of a prediction")
    optimizer: Annotated[str, one_of("adam", what="function")] = Key(
        "adam",
        "'adam', or `package.module:function` from parameters and lr, with which splits train one "
        "by one",
        digest="unless default",
    )

    @model_validator(mode="after")
    def _has_kl(self) -> Recipe:
        for key in ("kl_weight", "kl_schedule"):
            value = getattr(self, key)
            changed = value != type(self).model_fields[key].default
            if changed and self.lane is not None and not self.lane.has_kl:
                raise ValueError(
                    f"{key} = {value}: the method {self.strategy!r} has no KL; leave it out"
                )
        return self

    @property
    def lane(self) -> type[LaneMethod] | None:
        """The method's lanes; None if its splits cannot train as lanes."""
        if self.network is not None or self.optimizer != "adam" or self.is_without_lanes:
            return None
        lane = lanes.find(self.strategy)
        return lane if lane is not None and lane.serves(self.posterior, self.options) else None


MAY_DIFFER = declared(Recipe, lanes="may differ") - {"initial_rho", "initial_noise"}
"""Keys in which lanes of one program may differ; all other keys make its shape. All lanes have the
same initial noise."""


class Run(MethodRun):
    """One method on one split of one table; the seed is the split."""

    TRACK: ClassVar[str] = "regression"
    FILES: ClassVar[tuple[str, ...]] = ("scores.csv",)
    LIKELIHOOD: ClassVar[str] = "gaussian"

    data: DataSettings
    recipe: Recipe

    @model_validator(mode="after")
    def _intervals_of_test_rows(self) -> Run:
        if self.data.uncertainty and self.evaluate_on == "validation":
            raise ValueError(
                "data.uncertainty: calibrates intervals on validation rows and cannot score them "
                "too; leave it out, or set evaluate_on = 'test'"
            )
        return self

    @property
    def is_lane(self) -> bool:
        """Whether the run trains as a lane of one program."""
        lane = self.recipe.lane
        return lane is not None and (self.data.slices is None or lane.carried)

    @property
    def label(self) -> str:
        """The set and its number of slices, with method and seed."""
        slices = self.data.slices
        how = "" if slices is None else " at once" if slices == 1 else f" in {slices} slices"
        return f"{self.data.name}{how}  {self.method} seed {self.seed}"

    @property
    def steps(self) -> int:
        """Total number of Adam steps."""
        return self.recipe.steps * ((self.data.slices or 1) + len(self.updates or ()))

    def shape(self) -> str:
        """A key that runs share if they can be lanes of one program."""
        lane = self.recipe.lane
        assert lane is not None
        free: dict[str, Any] = dict.fromkeys(MAY_DIFFER - {*lane.alike}, True)
        keys = {**free, "options": {*lane.options} - {*lane.alike}}
        return self.model_dump_json(exclude={"method": True, "seed": True, "recipe": keys})

    def data_facts(self, data_dir: Path | None) -> dict[str, Any]:
        """The checksum of the table's files.

        Raises:
            UserError, DataError: see `files.checksum`.
        """
        return {"checksum": files.checksum(self.data, data_dir)}
