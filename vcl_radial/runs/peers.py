"""Train one network in several processes, each on its share of every batch (`torchrun`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

_PATIENCE: Final = timedelta(hours=6)
"""Time that processes wait while the first one predicts and scores."""


@dataclass(frozen=True)
class Peers:
    """This process among those that train together.

    Attributes:
        rank: the rank of this process; rank 0 writes all files.
        world: number of processes.
    """

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all processes have called this."""
        if self.world > 1:
            import torch.distributed as dist

            dist.barrier()

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes, in place."""
        if self.world > 1:
            import torch.distributed as dist

            dist.all_reduce(values)
            values /= self.world
        return values

    def from_first(self, compute: Callable[[], float], device: torch.device) -> float:
        """A number that the first process computes and all processes get."""
        if self.world == 1:
            return compute()
        import torch
        import torch.distributed as dist

        value = torch.tensor(compute() if self.is_first else 0.0, dtype=torch.float64).to(device)
        dist.broadcast(value, 0)
        return float(value)

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Average every gradient over the processes as soon as a backward pass has added to it.

        After several backward passes before a step, the mean of the sum is the sum of the means.
        """
        if self.world > 1:
            for parameter in (p for p in parameters if p.requires_grad):
                hook: Any = parameter.register_post_accumulate_grad_hook
                hook(self._average_gradient)

    def _average_gradient(self, parameter: Tensor) -> None:
        if parameter.grad is not None:
            self.mean(parameter.grad)


ALONE: Final = Peers()


def under_torchrun() -> bool:
    """Whether `torchrun` has started this process among others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


@contextmanager
def joined(device: str) -> Iterator[tuple[Peers, str]]:
    """Yield the peers that `torchrun` started, or this process alone, and this process's device.

    Args:
        device: "cpu" or "cuda"; with several GPUs each process takes one.
    """
    if not under_torchrun():
        yield ALONE, device
        return
    import torch
    import torch.distributed as dist

    if device == "cuda":
        device = f"cuda:{int(os.environ.get('LOCAL_RANK', '0'))}"
        torch.cuda.set_device(device)
    backend = "gloo" if device == "cpu" else "nccl"
    dist.init_process_group(backend, timeout=_PATIENCE)
    try:
        yield Peers(dist.get_rank(), dist.get_world_size()), device
    finally:
        dist.destroy_process_group()
