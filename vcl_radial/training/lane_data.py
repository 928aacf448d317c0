"""The data of a task for many runs that train as lanes of one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class LaneData:
    """The points of a task in R lanes, which may share them; shorter lanes are padded with zeros.

    Attributes:
        x: inputs `[R, N, ...]`, or `[1, N, ...]` if all lanes have the same points. N is the
            largest number of points of a lane.
        y: targets `[R, N]` or `[1, N]`.
        points: number of points of each lane, `[R]`; padding comes last.
        head: label of the head that the task trains.
    """

    x: Tensor
    y: Tensor
    points: Tensor
    head: int = 0

    def __len__(self) -> int:
        """The number of lanes R."""
        return len(self.points)

    @classmethod
    def of(cls, lanes: Sequence[tuple[Tensor, Tensor]]) -> LaneData:
        """Make it from inputs `[N_i, ...]` and targets `[N_i]` of each lane."""
        pad = torch.nn.utils.rnn.pad_sequence
        return cls(
            pad([x.float() for x, _ in lanes], batch_first=True),
            pad([y.float() for _, y in lanes], batch_first=True),
            torch.tensor([len(y) for _, y in lanes]),
        )

    def of_lanes(self, lanes: Sequence[int]) -> LaneData:
        """Some of the lanes, by their numbers."""
        if [*lanes] == [*range(len(self))]:
            return self
        points = self.points[lanes]
        if len(self.y) < len(self):  # all lanes share their points
            return replace(self, points=points)
        return replace(self, x=self.x[lanes], y=self.y[lanes], points=points)

    @property
    def table(self) -> tuple[Tensor, Tensor]:
        """All lanes' inputs `[R N, ...]` and targets `[R N]`, one below the other."""
        return self.x.flatten(0, 1), self.y.flatten()

    def in_table(self, rows: Tensor) -> Tensor:
        """Each lane's rows `[..., R, B]` by their numbers in `table`."""
        return rows + torch.arange(len(self))[:, None] * self.y.shape[1]

    @property
    def is_data(self) -> Tensor:
        """1 for points and 0 for padding, `[R, N]`."""
        return (torch.arange(self.y.shape[1]) < self.points[:, None]).float()

    def mean_over_points(self, values: Tensor) -> Tensor:
        """The mean of `[..., R, N]` over each lane's points, `[..., R]`."""
        return (values * self.is_data).sum(-1) / self.points


class LaneBatches:
    """Endless batches of each lane's rows, in one random order of all rows after another.

    Every row of a lane comes once before any comes again. Batches are always full, because they
    continue from one order into the next; so padding is never drawn, lanes of unequal length need
    no weights, and a batch's mean is an unbiased estimate of the mean over its lane. A batch is at
    most as large as the smallest lane.

    Args:
        points: rows of each lane, `[R]`.
        batch_size: rows of a batch.
        generators: a generator of each lane's orders.
    """

    def __init__(
        self, points: Tensor, batch_size: int, generators: Sequence[torch.Generator]
    ) -> None:
        self.points = points.tolist()
        self.batch_size = min(batch_size, *self.points)
        self.generators = list(generators)
        self._remaining = [torch.empty(0, dtype=torch.long) for _ in self.points]

    def take(self, steps: int) -> Tensor:
        """Return the rows of the next batches, `[steps, R, B]`."""
        return torch.stack([self._rows(lane, steps) for lane in range(len(self.points))], dim=1)

    def _rows(self, lane: int, steps: int) -> Tensor:
        needed = steps * self.batch_size
        orders, count = [self._remaining[lane]], len(self._remaining[lane])
        while count < needed:
            orders.append(torch.randperm(self.points[lane], generator=self.generators[lane]))
            count += self.points[lane]
        rows = torch.cat(orders)
        self._remaining[lane] = rows[needed:]
        return rows[:needed].view(steps, self.batch_size)
