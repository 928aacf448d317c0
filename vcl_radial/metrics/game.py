"""Scores of a bandit's game from its cumulative rewards: functions of the rounds of a game.

A game has the columns `round`, `reward` and `optimum`: the rewards earned so far, and the expected
rewards of the best actions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vcl_radial.metrics.declared import metric

if TYPE_CHECKING:
    import pandas as pd

_game_metric = partial(metric, of="game")


@_game_metric(
    "reward (% of the best)", 1, "higher", "cumulative reward over that of the best actions"
)
def relative_reward(game: pd.DataFrame) -> pd.Series[float]:
    """Cumulative reward over the expected reward of the best actions, in per cent.

        100 sum_t r_t / sum_t max_a E[r_t | a]

    Returns:
        A value for each round; nan where nothing can be earned.
    """
    return 100 * game["reward"] / game["optimum"].where(game["optimum"] != 0)


@_game_metric(
    "regret (rewards)", 0, "lower", "expected reward of the best actions minus the reward"
)
def regret(game: pd.DataFrame) -> pd.Series[float]:
    """Expected reward of the best actions minus the cumulative reward, for each round.

    sum_t max_a E[r_t | a] - r_t
    """
    return game["optimum"] - game["reward"]
