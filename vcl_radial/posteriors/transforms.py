"""What has a gradient of its own, under the transforms of `torch.func`: grad, vmap, jacrev, ..."""

from __future__ import annotations

from typing import Any

import torch

from vcl_radial.errors import UserError


def transformed() -> bool:
    """Whether a transform of `torch.func` is active."""
    return bool(torch._C._are_functorch_transforms_active())


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """What a function with a gradient of its own gives.

    Raises:
        UserError: a transform is active: it would need a rule for each of them.
    """
    if transformed():
        refuse()
    return function.apply(*arguments)


def refuse() -> None:
    """Raise what is said under a transform of what it cannot see through.

    Raises:
        UserError: always.
    """
    raise UserError(
        "the transforms of torch.func (grad, vmap, jacrev, ...) cannot be taken of the draws of an "
        "rdp posterior, nor of the KL of a low-rank one or between radial ones: use torch.autograd"
    )
