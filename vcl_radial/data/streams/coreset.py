"""Selection of a task's coreset: at random, or spread over the inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from vcl_radial.errors import bad_value

Selection: TypeAlias = Callable[[Tensor, int, torch.Generator | None], Tensor]
"""Inputs `[n, ...]`, a size and a source of randomness to row numbers `[size]`, all different."""


def random_coreset(x: Tensor, size: int, generator: torch.Generator | None = None) -> Tensor:
    """Return row numbers `[size]` drawn uniformly without replacement.

    Args:
        x: inputs `[n, ...]`.
        size: size of the coreset, at most n.
        generator: generator of the draw, on the CPU; None: PyTorch's global one.
    """
    return torch.randperm(len(x), generator=generator)[:size].to(x.device)


def k_centre_coreset(x: Tensor, size: int, generator: torch.Generator | None = None) -> Tensor:
    """Return row numbers `[size]` of centres that leave no input far from its nearest centre.

        c_1 at random,   c_k = argmax_i min_{j < k} ||x_i - x_{c_j}||

    The greedy choice covers the inputs with balls at most twice as wide as the best choice of as
    many centres (Gonzalez 1985, "Clustering to minimize the maximum intercluster distance").

    Args:
        x: inputs `[n, ...]`; distances are Euclidean.
        size: size of the coreset, at most n.
        generator: generator of the first centre, on the CPU; None: PyTorch's global one.
    """
    x = x.flatten(1)
    centres = torch.empty(size, dtype=torch.int64, device=x.device)
    nearest = x.new_full((len(x),), torch.inf)
    centre = torch.randint(len(x), (), generator=generator).to(x.device)
    for k in range(size):
        centres[k] = centre
        torch.minimum(nearest, (x - x[centre]).square_().sum(-1), out=nearest)
        # A centre is not chosen twice, even if all other inputs equal one.
        nearest[centre] = -1
        centre = nearest.argmax()
    return centres


SELECTIONS: dict[str, Selection] = {"random": random_coreset, "k-centre": k_centre_coreset}


def coreset(
    selection: str, x: Tensor, size: int, generator: torch.Generator | None = None
) -> Tensor:
    """Return row numbers `[size]` of inputs `[n, ...]`, chosen by the selection of that name.

    Raises:
        UserError: the name is unknown, or no point of the n would be left.
    """
    if selection not in SELECTIONS:
        raise bad_value(
            "selection", selection, f"is not known: choose from {', '.join(SELECTIONS)}"
        )
    if not 0 < size < len(x):
        raise bad_value(
            "coreset_size",
            size,
            f"must be at least 1 and leave some of the {len(x)} training points of a task",
        )
    return SELECTIONS[selection](x, size, generator)
