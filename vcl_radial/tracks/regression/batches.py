"""The data of R splits as lanes of one program, and their mini-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LaneData:
    """Standardised inputs and targets of every lane; shorter lanes are padded with zeros.

    Attributes:
        x: `[R, N, d]`, N the most rows of a lane.
        y: `[R, N]`.
        points: how many rows of each lane are data, `[R]`; the first ones are.
    """

    x: Tensor
    y: Tensor
    points: Tensor

    @classmethod
    def of(cls, lanes: Sequence[tuple[Tensor, Tensor]]) -> LaneData:
        """From inputs `[N_i, d]` and targets `[N_i]` of each lane."""
        pad = torch.nn.utils.rnn.pad_sequence
        return cls(
            pad([x.float() for x, _ in lanes], batch_first=True),
            pad([y.float() for _, y in lanes], batch_first=True),
            torch.tensor([len(y) for _, y in lanes]),
        )

    @property
    def is_data(self) -> Tensor:
        """1 for rows of data and 0 for padding, `[R, N]`."""
        return (torch.arange(self.y.shape[1]) < self.points[:, None]).float()

    def mean_over_points(self, values: Tensor) -> Tensor:
        """The mean of `[..., R, N]` over each lane's own rows, `[..., R]`."""
        return (values * self.is_data).sum(-1) / self.points

    @property
    def table(self) -> tuple[Tensor, Tensor]:
        """All lanes' inputs `[R N, d]` and targets `[R N]`, one below the other."""
        return self.x.flatten(0, 1), self.y.flatten()

    def in_table(self, rows: Tensor) -> Tensor:
        """Each lane's rows `[..., R, B]` by their numbers in `table`."""
        return rows + torch.arange(len(self.points))[:, None] * self.y.shape[1]


class LaneBatches:
    """Endless batches of each lane's rows: one random order of all of them after the other.

    Every row of a lane comes once before any comes again. Batches are always full, for they run on
    from one order into the next; so padding is never drawn, lanes of unequal length need no
    weights, and a batch's mean is an unbiased estimate of the mean over its own lane. A batch that
    would be larger than the smallest lane has that lane's size.

    Args:
        points: rows of each lane, `[R]`.
        batch_size: rows of a batch.
        generators: one for each lane, of its orders.
    """

    def __init__(
        self, points: Tensor, batch_size: int, generators: Sequence[torch.Generator]
    ) -> None:
        self.points = points.tolist()
        self.batch_size = min(batch_size, *self.points)
        self.generators = list(generators)
        self._left = [torch.empty(0, dtype=torch.long) for _ in self.points]

    def take(self, steps: int) -> Tensor:
        """The rows of the next batches, `[steps, R, B]`."""
        return torch.stack([self._of_lane(lane, steps) for lane in range(len(self.points))], dim=1)

    def _of_lane(self, lane: int, steps: int) -> Tensor:
        wanted = steps * self.batch_size
        orders, found = [self._left[lane]], len(self._left[lane])
        while found < wanted:
            orders.append(torch.randperm(self.points[lane], generator=self.generators[lane]))
            found += self.points[lane]
        rows = torch.cat(orders)
        self._left[lane] = rows[wanted:]
        return rows[:wanted].view(steps, self.batch_size)
