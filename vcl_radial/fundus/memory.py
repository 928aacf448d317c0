"""How much memory a training run takes, before it starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call

from vcl_radial.errors import UserError
from vcl_radial.nn.grouping import Layer
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.predict import own_randomness

OPTIMIZER_STATES: Final = {"sgd": 0, "sgd-momentum": 1, "adam": 2, "amsgrad": 3}
"""Numbers that an optimiser keeps for each parameter."""

_MARGIN: Final = 1.25
"""For what allocators and kernels take besides."""


@dataclass(frozen=True)
class Memory:
    """Bytes that a training step holds at its peak, by kind.

    Attributes:
        weights: parameters, their gradients, the optimiser's state and the prior.
        activations: what the backward pass needs: of the layers, the draws and the KL.
        work: room for the largest results and their gradients.
        data: pixels on the device, and the batch.
    """

    weights: int
    activations: int
    work: int
    data: int

    @property
    def total(self) -> int:
        """All of it, with a margin of a quarter."""
        return round(_MARGIN * (self.weights + self.activations + self.work + self.data))

    def __str__(self) -> str:
        parts = (
            f"{name} {_gigabytes(getattr(self, name))}"
            for name in ("activations", "weights", "work", "data")
        )
        return f"{_gigabytes(self.total)} ({', '.join(parts)})"


def estimate_memory(
    network: nn.Module,
    image_shape: Sequence[int],
    batch_size: int,
    *,
    optimizer: str = "amsgrad",
    samples: int = 1,
    resident: int = 0,
) -> Memory:
    """Estimate the memory of a training step, without making it.

    A forward pass on PyTorch's meta device, which has shapes and no numbers, tells what autograd
    would save of the layers. The weights are drawn once, layer after layer, from randomness of
    their own, for what is saved of draws and KL; the network is left as it is.

    Args:
        network: called with a batch of images.
        image_shape: of one image, `[C, H, W]`.
        batch_size: of a step, on one device.
        optimizer: one of `OPTIMIZER_STATES`.
        samples: weight samples whose graphs are held at the same time; 1 where each is followed by
            its own backward pass.
        resident: bytes of the data that are held on the device.

    Raises:
        UserError: the optimiser is not known.
    """
    if optimizer not in OPTIMIZER_STATES:
        raise UserError(f"optimizer = {optimizer!r} is none of {', '.join(OPTIMIZER_STATES)}")
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    on_meta: dict[str, Tensor] = {
        name: torch.empty_like(t, device="meta").requires_grad_(t.requires_grad)
        for name, t in tensors.items()
    }
    image = torch.empty(batch_size, *image_shape, device="meta")
    saved = _Saved(on_meta.values())
    with _without_draws(network) as drawing, saved:
        functional_call(network, on_meta, (image,))
    trained = [p for p in network.parameters() if p.requires_grad]
    copies = 1 + OPTIMIZER_STATES[optimizer]
    return Memory(
        weights=sum(t.nbytes for t in tensors.values()) + copies * sum(p.nbytes for p in trained),
        activations=samples * (sum(saved.sizes) + drawing),
        work=2 * max([*saved.sizes, image.nbytes]),
        data=image.nbytes + resident,
    )


def check_memory(memory: Memory, device: torch.device | str = "cpu") -> None:
    """See that a run fits into what is free on its device.

    Raises:
        UserError: it does not, in the user's words.
    """
    free = free_memory(device)
    if free is not None and memory.total > free:
        raise UserError(
            f"this run needs about {memory}, and {torch.device(device)} has {_gigabytes(free)} "
            "free: choose a smaller batch_size, smaller images or fewer channels"
        )


def free_memory(device: torch.device | str = "cpu") -> int | None:
    """Bytes that are free on a device; None where that cannot be told."""
    device = torch.device(device)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # What PyTorch holds and does not use is free for it.
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + held)
    if device.type != "cpu":
        return None
    known = [size for size in (_available(), _container_limit()) if size is not None]
    return min(known, default=None)


@contextmanager
def _without_draws(network: nn.Module) -> Iterator[int]:
    """Layers get weights without numbers inside; yields the bytes that draws and KL would save."""
    layers = [m for m in network.modules() if isinstance(m, VariationalWeights)]
    samplers = [layer.sampler for layer in layers]
    saved_bytes = 0
    try:
        for layer in layers:
            layer.sampler = None
            saved = _Saved([*layer.parameters(), *layer.buffers()])
            some = next(layer.parameters())
            with own_randomness(0, some.device), saved:
                weight, bias = layer.sample()
                layer.kl()
            saved_bytes += sum(saved.sizes)
            vars(layer)["sample"] = _Stand(weight, bias)
        yield saved_bytes
    finally:
        for layer, sampler in zip(layers, samplers, strict=True):
            vars(layer).pop("sample", None)
            layer.sampler = sampler


class _Stand:
    """Gives weights of these shapes, without numbers."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = torch.empty_like(weight, device="meta")
        self.bias = None if bias is None else torch.empty_like(bias, device="meta")

    def __call__(self) -> Layer:
        bias = None if self.bias is None else self.bias.clone().requires_grad_()
        return self.weight.clone().requires_grad_(), bias


class _Saved(saved_tensors_hooks):
    """Inside, the tensors that autograd saves for the backward pass, each storage once."""

    def __init__(self, known: Iterable[Tensor]) -> None:
        super().__init__(self._pack, lambda tensor: tensor)
        # They are held, so that no storage takes the place of another.
        self._held = list(known)
        self._seen = {_storage(tensor) for tensor in self._held}
        self.sizes: list[int] = []

    def __enter__(self) -> None:
        self._grad = torch.enable_grad()
        self._grad.__enter__()
        super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._grad.__exit__(*exception)

    def _pack(self, tensor: Tensor) -> Tensor:
        if (storage := _storage(tensor)) not in self._seen:
            self._seen.add(storage)
            self._held.append(tensor)
            self.sizes.append(tensor.untyped_storage().nbytes())
        return tensor


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _available(account: Path = Path("/proc/meminfo")) -> int | None:
    """What Linux says that a program can get without swapping; None elsewhere."""
    try:
        lines = account.read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(w.split()[1]) for w in lines if w.startswith("MemAvailable:")), None)


def _container_limit(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that a container's limit leaves (Linux, cgroup v2); None where there is none."""
    try:
        most = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
        return None if most == "max" else max(int(most) - used, 0)
    except (OSError, ValueError):
        return None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
