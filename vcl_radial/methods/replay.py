"""Experience replay: a buffer of past examples, trained jointly with the new task.

    loss = ( N_t * mean NLL of the new task + N_past * mean NLL of the buffer ) / (N_t + N_past)

with N_past the number of points that the past tasks had, not the size of the buffer: where the
buffer is a fair sample of them, the loss estimates that of joint training on all tasks so far, and
a buffer that holds them all gives it exactly. Each step sees a batch of the task and one of the
buffer, or all of it where it is no larger than a batch (Chaudhry et al. 2019, "On Tiny Episodic
Memories in Continual Learning", who give the two equal weights instead).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.errors import UserError
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch, Task, columns

SELECTIONS = "reservoir", "class-balanced"


class Replay(Method):
    """Keep some points of each task and go on training on them.

    Args:
        buffer_size: points kept, of all past tasks together.
        selection: "reservoir" for a uniform sample of all points seen, "class-balanced" for as many
            of each class of each head as of any other.
        settings: those of `Method`.

    Raises:
        UserError: the buffer is empty, or the selection is not known or needs classes.
    """

    trains_old_heads = True

    def __init__(
        self,
        network: nn.Module,
        *,
        buffer_size: int = 200,
        selection: str = "reservoir",
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        if buffer_size < 1:
            raise UserError(f"options.buffer_size = {buffer_size} must be at least 1")
        if selection not in SELECTIONS:
            raise UserError(
                f"options.selection = {selection!r} is not known: choose from "
                f"{', '.join(SELECTIONS)}"
            )
        if selection == "class-balanced" and self.likelihood.name == "gaussian":
            raise UserError(
                "options.selection = 'class-balanced' needs classes, and the targets are numbers: "
                "take 'reservoir'"
            )
        self.buffer_size, self.selection = buffer_size, selection
        self.buffer: tuple[Tensor, ...] = ()
        """Inputs, targets, task labels and lots of the points kept; empty before the first task."""
        self.seen = 0
        """N_past, the training points of all past tasks."""
        self._new_rows = 0

    def extend(self, batch: Batch) -> Batch:
        """The batch, and behind it one of the buffer."""
        if not self.buffer:
            return batch
        self._new_rows = len(batch.y)
        x, y, tasks, _ = self.buffer
        drawn = [x, y, tasks]
        if len(y) > self.task.batch_size:
            chosen = torch.randint(len(y), (self.task.batch_size,)).to(y.device)
            drawn = [column.index_select(0, chosen) for column in drawn]
        new = (batch.x, batch.y, batch.labels)
        return Batch(*(torch.cat(pair) for pair in zip(new, drawn, strict=True)))

    def loss(self, batch: Batch, outputs: Tensor) -> Tensor:
        """Mean NLL of all tasks so far, estimated from the batch and the buffer; nats per point."""
        if not self.buffer:
            return super().loss(batch, outputs)
        n, past = self._new_rows, self.seen / (self.seen + self.task.points)
        new_nll = self.likelihood.nll(outputs[..., :n, :], batch.y[:n])
        old_nll = self.likelihood.nll(outputs[..., n:, :], batch.y[n:])
        return (1 - past) * new_nll + past * old_nll

    def end_task(self, task: Task) -> None:
        """Draw a lot for each point of the task, and keep the points with the lowest lots."""
        new = [*columns(task.batches(), self.device)]
        new.append(torch.rand(len(new[0]), dtype=torch.float64).to(self.device))
        self.seen += len(new[0])
        old = self.buffer or [column[:0] for column in new]
        rows = [torch.cat(both) for both in zip(old, new, strict=True)]
        _, y, tasks, lots = rows
        balanced = self.selection == "class-balanced"
        kept = lowest_lots(y, tasks, lots, self.buffer_size, balanced)
        self.buffer = tuple(column[kept] for column in rows)

    def state_dict(self) -> dict[str, Any]:
        """As every method, the buffer, and the number of points that it stands for."""
        return super().state_dict() | {"buffer": self.buffer, "seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self.buffer = tuple(column.to(self.device) for column in state["buffer"])
        self.seen = state["seen"]


def lowest_lots(y: Tensor, tasks: Tensor, lots: Tensor, size: int, balanced: bool) -> Tensor:
    """The row numbers of the points to keep, in ascending order; at most `size`.

    Each point draws one lot uniformly from [0, 1) and keeps it. The points with the lowest lots are
    a uniform sample of all that ever drew, as a reservoir is, however often it is thinned out.
    Balanced, the points of each class and task line up by their lots, and the places go to the
    first of each line, then the second, and so on.

    Shapes: y, tasks and lots `[n]`.
    """
    order = lots.argsort()
    if balanced:
        classes = torch.stack([tasks, y], dim=1)[order]
        _, lines = torch.unique(classes, dim=0, return_inverse=True)
        by_line = lines.argsort(stable=True)
        counts = lines.bincount()
        starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
        place = torch.empty_like(lines)
        place[by_line] = torch.arange(len(lines), device=lines.device) - starts
        order = order[place.argsort(stable=True)]
    return order[:size].sort().values
