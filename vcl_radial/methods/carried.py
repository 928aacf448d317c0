"""Number of bytes that a method carries from task to task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from vcl_radial.nn.blocks import softplus


def contents(state: Any) -> Set[bytes]:
    """Digests of a state's tensors: equal tensors of equal shape and type have the same digest."""
    return {tensor_digest(tensor) for _, tensor in _tensors(state)}


def carried_bytes(state: Any, start: Set[bytes]) -> int:
    """Number of bytes that must be kept after a task to continue with the same numbers.

        sum over the tensors of the state of numel * element_size

    without

    - tensors that training did not change, such as random features: a seed reproduces them,
    - tensors that are equal to another one: a penalty's anchor equals the weights after a task,
    - a prior tensor `prior_NAME` that equals the posterior's tensor NAME, and a `prior_scale` that
      equals the scale of `rho`.

    Buffers of stored points, precisions and running means count. The optimiser's state does not
    count, because each task starts a new optimiser. A tensor counts with the size of its stored
    type.

    Args:
        state: the method's `state_dict()` after the last task.
        start: `contents` of its network before the first task.
    """
    tensors = dict(_tensors(state))
    sizes = {
        tensor_digest(tensor): tensor.numel() * tensor.element_size()
        for name, tensor in tensors.items()
        if not _is_posterior(name, tensors)
    }
    return sum(size for digest, size in sizes.items() if digest not in start)


def _tensors(state: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors of a state that nests dictionaries and sequences, with their names."""
    if isinstance(state, Tensor):
        yield name, state
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield from _tensors(value, f"{name}.{key}")
    elif isinstance(state, list | tuple):
        for index, value in enumerate(state):
            yield from _tensors(value, f"{name}.{index}")


def tensor_digest(tensor: Tensor) -> bytes:
    """Digest of a tensor's type, shape and values."""
    flat = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
    hashed = blake2b(f"{tensor.dtype} {[*tensor.shape]}".encode(), digest_size=16)
    hashed.update(flat.numpy().data)
    return hashed.digest()


def _is_posterior(name: str, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a tensor is part of a prior and equals the posterior's tensor up to rounding."""
    block, _, part = name.rpartition(".")
    if not part.startswith("prior_"):
        return False
    posterior = tensors.get(f"{block}.{part.removeprefix('prior_')}")
    if part == "prior_scale" and f"{block}.rho" in tensors:
        posterior = softplus(tensors[f"{block}.rho"])
    prior = tensors[name]
    if posterior is None or posterior.shape != prior.shape:
        return False
    return torch.allclose(posterior, prior, rtol=1e-5, atol=0.0)
