"""Several processes that train one network, each on its share of every batch (`torchrun`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

_PATIENCE: Final = timedelta(hours=6)
"""How long processes wait while the first one predicts and scores."""


@dataclass(frozen=True)
class Peers:
    """This process among those that train together.

    Attributes:
        rank: of this process; the first, 0, writes all files.
        world: how many there are.
    """

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this one writes and speaks."""
        return self.rank == 0

    def wait(self) -> None:
        """Go on when all are here."""
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
        """A number that the first process computes and all have."""
        if self.world == 1:
            return compute()
        import torch
        import torch.distributed as dist

        value = torch.tensor(compute() if self.is_first else 0.0, dtype=torch.float64).to(device)
        dist.broadcast(value, 0)
        return float(value)

    def together(self, network: nn.Module, *, some_unused: bool) -> nn.Module:
        """The network as its gradients are averaged over the processes.

        Args:
            network: on its device.
            some_unused: whether a loss may leave out some of the parameters.
        """
        if self.world == 1:
            return network
        from torch.nn.parallel import DistributedDataParallel

        with warnings.catch_warnings():
            # The option's new name is unknown to older versions of PyTorch.
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            # Priors, the only buffers, are the same everywhere and change between sites alone.
            return DistributedDataParallel(
                network, broadcast_buffers=False, find_unused_parameters=some_unused
            )


ALONE: Final = Peers()


def unsynchronised(network: nn.Module) -> AbstractContextManager[None]:
    """Inside, gradients are added up in each process; the next backward pass outside averages."""
    from torch.nn.parallel import DistributedDataParallel

    if isinstance(network, DistributedDataParallel):
        synchronised: AbstractContextManager[None] = network.no_sync()
        return synchronised
    return nullcontext()


@contextmanager
def joined(device: str) -> Iterator[tuple[Peers, str]]:
    """The peers that `torchrun` started, or this one alone, and the device of this one.

    Args:
        device: "cpu" or "cuda"; of several GPUs each process takes its own.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1 or "RANK" not in os.environ:
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
        yield Peers(dist.get_rank(), world), device
    finally:
        dist.destroy_process_group()
