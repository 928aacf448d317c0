"""Who plays, one file per method: makers of an agent from the game's sizes and the settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vcl_radial.tracks.bandits.agents.badam import BAdamAgent
from vcl_radial.tracks.bandits.agents.base import Agent
from vcl_radial.tracks.bandits.agents.dropout import DropoutAgent
from vcl_radial.tracks.bandits.agents.greedy import GreedyAgent
from vcl_radial.tracks.bandits.agents.uniform import UniformAgent
from vcl_radial.tracks.bandits.agents.vadam import VadamAgent
from vcl_radial.tracks.bandits.agents.variational import VariationalAgent
from vcl_radial.tracks.bandits.settings import Recipe

AGENTS: dict[str, Callable[[int, int, Recipe], Agent]] = {
    "badam": BAdamAgent,
    "mc-dropout": DropoutAgent,
    "bbb": partial(VariationalAgent, family="gaussian"),
    "vadam": VadamAgent,
    "radial": partial(VariationalAgent, family="radial"),
    "greedy": GreedyAgent,
    "uniform": UniformAgent,
}
"""By name, in the order of the paper's Table 1, with radial before the baselines."""

__all__ = ["AGENTS", "Agent", "Recipe"]
