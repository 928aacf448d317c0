"""Functions with a custom gradient under the transforms of `torch.func`: grad, vmap, jacrev, ..."""

from __future__ import annotations

from typing import Any

import torch

from vcl_radial.errors import UserError


def transformed() -> bool:
    """Whether a transform of `torch.func` is active."""
    return bool(torch._C._are_functorch_transforms_active())


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """Apply a function with a custom gradient.

    Raises:
        UserError: A transform is active; each transform would need a rule.
    """
    if transformed():
        refuse()
    return function.apply(*arguments)


def refuse() -> None:
    """Raise the error of a function that has no rule for transforms.

    Raises:
        UserError: Always.
    """
    raise UserError(
        "the transforms of torch.func (grad, vmap, jacrev, ...) cannot be taken of the draws of an "
        "rdp posterior, nor of the KL of a low-rank one or between radial ones: use torch.autograd"
    )
