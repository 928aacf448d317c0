"""The data of a task for many runs that train as lanes of one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

    def of_lanes(self, lanes: Sequence[int]) -> LaneData:
        """Some of the lanes, by their numbers."""
        x, y = (t if len(t) == 1 else t[lanes] for t in (self.x, self.y))
        return replace(self, x=x, y=y, points=self.points[lanes])

    @property
    def table(self) -> tuple[Tensor, Tensor]:
        """All lanes' inputs `[R N, ...]` and targets `[R N]`, one below the other."""
        return self.x.flatten(0, 1), self.y.flatten()
