"""The validated keys of a bandit's data and of an agent's recipe."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from vcl_radial.runs.settings import Count, Positive, Settings
from vcl_radial.runs.spec import RunSpec
from vcl_radial.tracks.recipe import StepRecipe

FILES = {
    "mushroom": "mushroom.csv.gz",
    "statlog": "statlog_shuttle.csv.gz",
    "adult": "adult.csv.gz",
}
"""The file of each table, in the folder `bandits` of the data folder."""

WITH_KL = ("bbb", "radial", "vadam")
"""Agents whose loss has a KL between posterior and prior."""


class DataSettings(Settings):
    """The game; its order of rows, and the harm of a mushroom, are the seed's.

    Attributes:
        table: a name of `FILES`.
        rounds: the first so many of the game; None for every row once.
        pulls: of each action at the start.
        every: rounds between two trainings, t_f.
        validation: the share of the rows that settings are chosen on, in games of their own; the
            other games are on the other rows.
        checksum: of the file; a command fills it in.
    """

    table: Literal["mushroom", "statlog", "adult"]
    rounds: Count | None = None
    pulls: Count = 3
    every: Count = 20
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.0
    checksum: str | None = None


class Recipe(StepRecipe):
    """How an agent learns; by default as Kessler et al. 2020 have it, Appendix D.3, if they say.

    Attributes:
        agent: which; see `vcl_radial.tracks.bandits.agents`.
        hidden: units of the hidden layers.
        learning_rate: of the first step of a training.
        decay: of the learning rate (0.5 in Riquelme et al.'s published settings).
        steps: of a training, t_s.
        batch_size: rounds of a step, drawn from all that were seen.
        clip: the most that the gradient's norm is, of networks that are no variational ones.
        initial_weight: the weights of these networks start uniformly within +-this.
        prior_scale: of the Gaussian prior N(0, prior_scale^2), sqrt(2 / 100).
        kl_weight: of the KL, for the agents of `WITH_KL`; 1 is the evidence lower bound.
        dropout: the rate of MC dropout.
        noise: standard deviation of the rewards' noise in BBB (Riquelme et al.).
        initial_noise: of a weight, where variational inference starts: exp(-5) (Riquelme et al.).
        vadam_noise: the same of VADAM.
    """

    agent: Literal["badam", "mc-dropout", "bbb", "vadam", "radial", "greedy", "uniform"]
    hidden: Annotated[list[Count], Field(min_length=1)] = Field(default=[100, 100])
    learning_rate: Positive = 0.1
    decay: Annotated[float, Field(ge=0)] = 0.5
    steps: Count = 50
    batch_size: Count = 512
    clip: Positive = 5.0
    initial_weight: Positive = 0.3
    prior_scale: Positive = 0.1414
    kl_weight: Positive = 1.0
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    noise: Positive = 0.1
    initial_noise: Positive = 0.0067
    vadam_noise: Positive = 0.1

    @model_validator(mode="after")
    def _has_kl(self) -> Recipe:
        if self.kl_weight != 1 and self.agent not in WITH_KL:
            raise ValueError(f"kl_weight: the agent {self.agent!r} has no KL in its loss")
        return self


class Run(RunSpec):
    """A game of an agent."""

    TRACK: ClassVar[str] = "bandits"
    FILES: ClassVar[tuple[str, ...]] = ("rewards.csv",)

    data: DataSettings
    recipe: Recipe

    @model_validator(mode="after")
    def _validation_exists(self) -> Run:
        if self.evaluate_on == "validation" and self.data.validation == 0:
            raise ValueError("evaluate_on = 'validation' needs data.validation above 0")
        return self
