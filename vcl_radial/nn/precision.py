"""Products in bfloat16, in a network's body only."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def features_in(body: Callable[[Tensor], Tensor], x: Tensor, *, bfloat16: bool) -> Tensor:
    """The features of a body, in the type of x; with `bfloat16` it computes products in bfloat16.

    Heads stay in the type of x: logits of 8 bits would have ties between inputs.
    """
    # Meta tensors, which estimate a run's memory, have no autocast: float32 is an upper bound.
    if not bfloat16 or x.is_meta:
        return body(x)
    with torch.autocast(x.device.type, torch.bfloat16):
        return body(x).to(x.dtype)
