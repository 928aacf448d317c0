"""The check of a step's labels."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from vcl_radial.methods.tasks import Batch, check_batch

if TYPE_CHECKING:
    from vcl_radial.methods.base import Method


def check_labels(method: Method, batch: Batch, outputs: int) -> None:
    """Check that the targets of a batch fit a head with this number of outputs.

    A check of labels on a GPU waits for the GPU: they are checked once, in the first step of a
    task.

    Raises:
        DataError, UserError: see `Likelihood.check` and `check_batch`.
    """
    if batch.y.is_cpu:
        method.likelihood.check(batch.y, outputs)
    elif not method.labels_seen:
        method.labels_seen = True
        for part in chain([batch], method.task.batches()):
            on_cpu = Batch(part.x, part.y.cpu(), part.labels.cpu())
            check_batch(on_cpu, method.heads if method.with_task else None)
            method.likelihood.check(on_cpu.y, outputs)
