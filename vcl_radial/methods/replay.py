"""Experience replay: a buffer of past examples, trained jointly with the new task.

    loss = ( N_t * mean NLL of the new task + N_past * mean NLL of the buffer ) / (N_t + N_past)

with N_past the number of points of the past tasks, not the size of the buffer. If the buffer is a
uniform sample of the past points, the loss is an estimate of the loss of joint training on all
tasks so far; a buffer with all points gives this loss exactly. Each step uses a batch of the task
and a batch of the buffer, or the whole buffer if it is no larger than a batch (Chaudhry et al.
2019, "On Tiny Episodic Memories in Continual Learning", with equal weights for the two batches
instead).

The buffer stores inputs with at most 256 different values as one byte per value and a table of the
values, without loss. Images are such inputs, also after a transform of single pixels. It stores
other inputs unchanged. A point also has a target, a label and a lot; they take 8 bytes each if
targets are classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import Count
from vcl_radial.errors import UserError
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch, Task, columns

BUFFER_SIZE = 200
"""Default number of points in the buffer."""

_BYTE = 2**8
"""Number of values of a byte."""

_ROWS = 64
"""Number of inputs that are tested first, before all inputs are tested."""


class Replay(Method):
    """Keep some points of each task and keep training on them.

    Args:
        buffer_size: number of stored points of all past tasks; 200 if `buffer_bytes` is not given.
        buffer_bytes: store as many points as fit into these bytes, in the module's format; instead
            of `buffer_size`.
        selection: "reservoir" for a uniform sample of all past points, "class-balanced" for equal
            numbers of each class of each head.
        settings: settings of `Method`.

    Raises:
        UserError: the buffer is empty or set twice, or the selection is not known or needs classes;
            at the start or end of a task, `buffer_bytes` is too small for one point.
    """

    carries = "a buffer of `buffer_size` points of all past tasks"
    grows = True

    trains_old_heads = True

    def __init__(
        self,
        network: nn.Module,
        *,
        buffer_size: Count | None = None,
        buffer_bytes: Count | None = None,
        selection: Literal["reservoir", "class-balanced"] = "reservoir",
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        if buffer_size is not None and buffer_bytes is not None:
            raise UserError(
                f"options.buffer_bytes = {buffer_bytes} and options.buffer_size = {buffer_size} "
                "both set the buffer: leave one out"
            )
        if selection == "class-balanced" and self.likelihood.name == "gaussian":
            raise UserError(
                "options.selection = 'class-balanced' needs classes, and the targets are numbers: "
                "take 'reservoir'"
            )
        self.buffer_size = BUFFER_SIZE if buffer_size is None else buffer_size
        self.buffer_bytes, self.selection = buffer_bytes, selection
        self.buffer: tuple[Tensor, ...] = ()
        """Inputs in the format of `coded`, targets, task labels and lots of the stored points; ()
        before the first task."""
        self.levels = torch.empty(0)
        """Values of the inputs' bytes, `[V]`; empty if the inputs are not stored as bytes."""
        self._inputs: Tensor | None = None  # decoded, within a task
        self.past_points = 0
        """N_past, the number of training points of all past tasks."""
        self._new_rows = 0

    def begin_task(self, task: Task) -> None:
        """Check before the first task that the buffer has room for a point."""
        super().begin_task(task)
        if self.buffer_bytes is not None and not self.buffer:
            batch = next(iter(task.batches()))
            lots = torch.empty(len(batch.y), dtype=torch.float64)
            _, levels = coded(batch.x)
            self._room((batch.x, batch.y, batch.labels, lots), in_bytes=len(levels) > 0)

    def extend(self, batch: Batch) -> Batch:
        """The batch, followed by a batch of the buffer."""
        if not self.buffer:
            return batch
        self._new_rows = len(batch.y)
        _, y, tasks, _ = self.buffer
        drawn = [self.inputs, y, tasks]
        if len(y) > self.task.batch_size:
            chosen = torch.randint(len(y), (self.task.batch_size,)).to(y.device)
            drawn = [column.index_select(0, chosen) for column in drawn]
        new = (batch.x, batch.y, batch.labels)
        return Batch(*(torch.cat(pair) for pair in zip(new, drawn, strict=True)))

    def loss(self, batch: Batch, outputs: Tensor) -> Tensor:
        """Mean NLL of all tasks so far, estimated from the batch and the buffer; nats per point."""
        if not self.buffer:
            return super().loss(batch, outputs)
        n, past = self._new_rows, self.past_points / (self.past_points + self.task.points)
        new_nll = self.likelihood.nll(outputs[..., :n, :], batch.y[:n])
        old_nll = self.likelihood.nll(outputs[..., n:, :], batch.y[n:])
        return (1 - past) * new_nll + past * old_nll

    def end_task(self, task: Task) -> None:
        """Draw a lot for each point of the task, and store the points with the lowest lots."""
        new = [*columns(task.batches(), self.device)]
        new.append(torch.rand(len(new[0]), dtype=torch.float64).to(self.device))
        self.past_points += len(new[0])
        old = [*self.buffer] or [column[:0] for column in new]
        if self.buffer:
            old[0] = self.inputs
        rows = [torch.cat(pair) for pair in zip(old, new, strict=True)]
        points = self._selected(rows, in_bytes=True)
        codes, self.levels = coded(points[0])
        if not len(self.levels):
            points = self._selected(rows, in_bytes=False)
            codes = points[0]
        self.buffer, self._inputs = (codes, *points[1:]), None

    @property
    def inputs(self) -> Tensor:
        """The original inputs of the stored points; decoded once per task."""
        if self._inputs is None:
            self._inputs = decoded(self.buffer[0], self.levels)
        return self._inputs

    def _selected(self, rows: Sequence[Tensor], *, in_bytes: bool) -> list[Tensor]:
        """The columns of the points to store, with values of one byte or of their current size."""
        _, y, tasks, lots = rows
        size = self.buffer_size
        if self.buffer_bytes is not None:
            size = self._room(rows, in_bytes=in_bytes)
        chosen = lowest_lots(y, tasks, lots, size, self.selection == "class-balanced")
        return [column[chosen] for column in rows]

    def _room(self, rows: Sequence[Tensor], *, in_bytes: bool) -> int:
        """The number of points that fit into `buffer_bytes`.

        Raises:
            UserError: no point fits.
        """
        assert self.buffer_bytes is not None
        x, *columns = rows
        point = x[0].numel() * (1 if in_bytes else x.element_size())
        point += sum(column.element_size() for column in columns)
        levels = _BYTE * x.element_size() if in_bytes else 0
        if (size := (self.buffer_bytes - levels) // point) < 1:
            raise UserError(
                f"options.buffer_bytes = {self.buffer_bytes} hold no point: raise it to at least "
                f"{point + levels}"
            )
        return size

    def state_dict(self) -> dict[str, Any]:
        """The state of every method, the buffer, and the number of points that it represents."""
        buffer = {"buffer": self.buffer, "levels": self.levels, "seen": self.past_points}
        return super().state_dict() | buffer

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.buffer = tuple(column.to(self.device) for column in state["buffer"])
        self.levels, self._inputs = state["levels"].to(self.device), None
        self.past_points = state["seen"]


def coded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs as uint8 of the same shape, and the values `[V]` of the bytes.

    Inputs with more than 256 different values, or of another type than float32, are returned
    unchanged, with no values.
    """
    nothing = x.new_empty(0)
    if x.dtype != torch.float32 or len(torch.unique(x[:_ROWS])) > _BYTE:
        return x, nothing
    levels, codes = torch.unique(x, return_inverse=True)
    return (codes.to(torch.uint8), levels) if len(levels) <= _BYTE else (x, nothing)


def decoded(codes: Tensor, levels: Tensor) -> Tensor:
    """The original inputs from the return values of `coded`."""
    if not len(levels):
        return codes
    return levels.index_select(0, codes.flatten().int()).view(codes.shape)


def lowest_lots(y: Tensor, tasks: Tensor, lots: Tensor, size: int, balanced: bool) -> Tensor:
    """The row numbers of the points to keep, in ascending order; at most `size`.

    Each point draws one lot uniformly from [0, 1) and keeps it. The points with the lowest lots are
    a uniform sample of all points so far, as in a reservoir, however often points are removed. If
    `balanced`, the points of each class and task are sorted by their lots; the first point of every
    class and task is kept, then the second, and so on.

    Shapes: y, tasks and lots `[n]`.
    """
    order = lots.argsort()
    if balanced:
        classes = torch.stack([tasks, y], dim=1)[order]
        _, lines = torch.unique(classes, dim=0, return_inverse=True)
        by_line = lines.argsort(stable=True)
        counts = lines.bincount()
        starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
        rank = torch.empty_like(lines)
        rank[by_line] = torch.arange(len(lines), device=lines.device) - starts
        order = order[rank.argsort(stable=True)]
    return order[:size].sort().values
