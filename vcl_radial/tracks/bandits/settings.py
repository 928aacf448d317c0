"""The validated keys of a bandit's data and of an agent's recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from vcl_radial.config.ranges import Count, NotNegative, Positive, ShareBelowOne
from vcl_radial.data.data_files import files_checksum
from vcl_radial.runs.keys import Key
from vcl_radial.runs.settings import Settings
from vcl_radial.tracks.bandits.files import path_of
from vcl_radial.tracks.recipe import MethodRecipe, MethodRun, PriorScale, one_of

UNIFORM = "uniform"
"""The strategy of a reference that takes every action with the same probability; not a method."""


class DataSettings(Settings):
    """The game; the run's seed draws the order of rows and the harm of a mushroom.

    Attributes:
        table: a name of `vcl_radial.tracks.bandits.files.FILES`.
        rounds: number of rounds; None for every row once.
        pulls: number of pulls of each action at the start.
        every: rounds between two trainings, t_f.
        validation: share of the rows on which settings are chosen, in separate games; all other
            games use the remaining rows.
        checksum: checksum of the file; a command fills it in.
    """

    table: Literal["mushroom", "statlog", "adult", "financial", "jester", "covertype", "census"]
    rounds: Count | None = None
    pulls: Count = 3
    every: Count = 20
    validation: ShareBelowOne = 0.0
    checksum: str | None = None


class Recipe(MethodRecipe):
    """How an agent learns; defaults are from Kessler et al. 2020, Appendix D.3, if stated there.

    The strategy may also be "uniform": every action with the same chance. `prior_scale` is
    sqrt(2 / 100); `initial_rho` is the value of Riquelme et al., where sigma starts at exp(-5).
    """

    prior_scale: PriorScale = 0.1414
    initial_rho: Annotated[float, Field(ge=-40, le=100)] = -5.0
    hidden: Annotated[list[Count], Field(min_length=1)] = Key(
        [100, 100], "units of the hidden layers"
    )
    optimizer: Annotated[str, one_of("adam", "rmsprop", what="function")] = Key(
        "adam",
        "optimiser of the method; 'rmsprop' is that of Riquelme et al.; or "
        "`package.module:function` from parameters and lr",
    )
    learning_rate: Positive = Key(0.1, "learning rate of a training's first step")
    decay: NotNegative = Key(
        0.5, "decay of the learning rate (0.5 in Riquelme et al.'s published settings)"
    )
    steps: Count = Key(50, "steps of a training, t_s")
    batch_size: Count = Key(512, "rounds of a step, drawn from all that were seen")
    clip: Positive = Key(5.0, "the largest norm of the gradient of networks without a posterior")
    initial_weight: Positive = Key(
        0.3, "the weights of an MLP without a posterior start uniformly within +-this"
    )
    loss: Literal["nll", "squared-error"] = Key("nll", "loss of a reward")
    noise: Positive = Key(0.1, "standard deviation of the rewards in the NLL (Riquelme et al.)")

    unsupported_hooks: ClassVar = {
        "closed_form": "learns one number in closed form, and a game has one for each action",
        "select": "selects points where a task begins, and those of a game become known one by one",
    }


class Run(MethodRun):
    """A game of an agent."""

    TRACK: ClassVar[str] = "bandits"
    FILES: ClassVar[tuple[str, ...]] = ("rewards.csv",)
    LIKELIHOOD: ClassVar[str] = "gaussian"

    data: DataSettings
    recipe: Recipe

    def check(self) -> None:
        """Check the method, unless all actions have the same probability."""
        if self.recipe.strategy != UNIFORM:
            super().check()

    def data_facts(self, data_dir: Path | None) -> dict[str, Any]:
        """The checksum of the table's file: games on other rows are other games.

        Raises:
            UserError: see `path_of`.
            DataError: the file is missing or cannot be read.
        """
        return {"checksum": files_checksum([path_of(self.data.table, data_dir)])}
