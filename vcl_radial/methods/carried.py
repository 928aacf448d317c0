"""How much a method carries from task to task, in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from vcl_radial.nn.blocks import softplus


def contents(state: Any) -> Set[bytes]:
    """A digest of each tensor of a state: equal tensors of equal shape and type have one."""
    return {_digest(tensor) for _, tensor in _tensors(state)}


def carried_bytes(state: Any, start: Set[bytes]) -> int:
    """What has to be kept after a task to go on with the same numbers, in bytes.

        sum over the tensors of the state of numel * element_size

    without

    - tensors that training has left as they were at the start, as random features: a seed gives
      them,
    - tensors that are equal to another one, as the anchor of a penalty to the weights after a task,
    - a prior `prior_NAME` that is the posterior's NAME beside it, `prior_scale` that of `rho`.

    Buffers of stored points, precisions and running means count, the optimiser's state does not:
    it starts afresh with a task. A tensor counts in the type that it is stored in.

    Args:
        state: what a method's `state_dict` gives after the last task.
        start: the `contents` of its network before the first task.
    """
    tensors = dict(_tensors(state))
    kept = {
        _digest(tensor): tensor.numel() * tensor.element_size()
        for name, tensor in tensors.items()
        if not _is_posterior(name, tensors)
    }
    return sum(count for digest, count in kept.items() if digest not in start)


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


def _digest(tensor: Tensor) -> bytes:
    """Of type, shape and values."""
    flat = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
    hashed = blake2b(f"{tensor.dtype} {[*tensor.shape]}".encode(), digest_size=16)
    hashed.update(flat.numpy().data)
    return hashed.digest()


def _is_posterior(name: str, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a tensor is part of a prior, and the posterior's is the same up to rounding."""
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
