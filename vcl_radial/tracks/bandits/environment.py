"""A bandit: contexts in random order, and the reward of each action.

- mushroom: to leave it earns 0, to eat it 5 if it is edible; if it is poisonous, -35 or 5 with
  equal chances, so that to leave it is best in expectation (Blundell et al. 2015, section 5.3).
- financial: eight portfolios, random directions beta_k of the stocks, with the noise of Riquelme et
  al.: r_k = beta_k' x + N(0, (0.01 k)^2) for k = 1 to 8; the best expected reward is max beta_k' x.
- jester: eight jokes that the game draws are the arms, whose rating is the reward; the ratings of
  the other 32 are the context.
- the others: 1 for the action that is the label, else 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from vcl_radial.errors import UserError
from vcl_radial.methods.tasks import Batch
from vcl_radial.tracks.bandits.table import Table

EDIBLE, HARMED = 5.0, -35.0


@dataclass(frozen=True, eq=False)
class Bandit:
    """A game of T rounds with K actions.

    Attributes:
        contexts: `[T, d]`.
        rewards: reward of each action, `[T, K]`; an agent sees only the reward of the chosen
            action.
        optimum: the highest expected reward of a round, `[T]`.
    """

    contexts: Tensor
    rewards: Tensor
    optimum: Tensor

    @property
    def rounds(self) -> int:
        """Number of rounds, T."""
        return len(self.contexts)

    @property
    def actions(self) -> int:
        """Number of actions, K."""
        return self.rewards.shape[1]


def make_bandit(table: Table, seed: int, rounds: int | None = None) -> Bandit:
    """The game of a seed: every row once in random order, or the first `rounds` of that order.

    Raises:
        UserError: there are fewer rows than rounds.
    """
    if rounds is not None and rounds > (rows := len(table.contexts)):
        raise UserError(f"data.rounds = {rounds}: {table.name} has {rows:,} rows; lower it")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(table.contexts), generator=generator)[:rounds]
    contexts = table.encode(table.contexts[order])
    labels = table.labels[order]
    if table.name == "mushroom":
        poisonous = labels == 1
        harmed = torch.rand(len(labels), generator=generator) < 0.5
        eaten = torch.where(poisonous & harmed, HARMED, EDIBLE)
        rewards = torch.stack([torch.zeros(len(labels)), eaten], dim=1)
        optimum = torch.where(poisonous, 0.0, EDIBLE)
    elif table.name == "financial":
        directions = torch.rand(contexts.shape[1], table.actions, generator=generator) * 2 - 1
        expected = contexts @ (directions / directions.norm(dim=0))
        noise = torch.randn(expected.shape, generator=generator)
        rewards = expected + noise * 0.01 * torch.arange(1, table.actions + 1)
        optimum = expected.amax(1)
    elif table.name == "jester":
        jokes = torch.randperm(contexts.shape[1], generator=generator)
        contexts, rewards = contexts[:, jokes].tensor_split([-table.actions], dim=1)
        optimum = rewards.amax(1)
    else:
        rewards = torch.nn.functional.one_hot(labels, table.actions).float()
        optimum = torch.ones(len(labels))
    return Bandit(contexts, rewards, optimum)


class Memory:
    """The rounds that an agent has played: contexts, its actions and their rewards.

    Args:
        bandit: the game; its rewards are not read here.
    """

    def __init__(self, bandit: Bandit) -> None:
        self._contexts = bandit.contexts
        self.actions = torch.zeros(bandit.rounds, dtype=torch.int64)
        self.rewards = torch.zeros(bandit.rounds)
        self.points = 0

    def add(self, action: int, reward: float) -> None:
        """Keep the action and the reward of the next context."""
        self.actions[self.points], self.rewards[self.points] = action, reward
        self.points += 1

    def batch(self, size: int) -> Batch:
        """Contexts `[B, d]`, and actions with their rewards `[B, 2]`, drawn with replacement."""
        return self._rows(torch.randint(self.points, (size,)))

    def batches(self, size: int) -> Iterator[Batch]:
        """Every round once, in order, in batches of at most this size."""
        return map(self._rows, torch.split(torch.arange(self.points), size))

    def _rows(self, rows: Tensor) -> Batch:
        targets = torch.stack([self.actions[rows].to(self.rewards), self.rewards[rows]], dim=1)
        return Batch(self._contexts[rows], targets)


def play(
    bandit: Bandit,
    choose: Callable[[Tensor], int],
    learn: Callable[[Memory], None],
    *,
    pulls: int,
    every: int,
    on_round: Callable[[Memory], None] = lambda memory: None,
) -> Memory:
    """Play a game: every action `pulls` times in turn, then the agent's choices.

    Args:
        bandit: the game.
        choose: function from a context `[d]` to an action.
        learn: called with all rounds so far after each `every` rounds.
        pulls: number of pulls of each action at the start.
        every: rounds between two trainings.
        on_round: called after every round with all rounds so far.
    """
    memory = Memory(bandit)
    for t in range(bandit.rounds):
        at_start = t < pulls * bandit.actions
        action = t % bandit.actions if at_start else choose(bandit.contexts[t])
        memory.add(action, float(bandit.rewards[t, action]))
        if (t + 1) % every == 0:
            learn(memory)
        on_round(memory)
    return memory
