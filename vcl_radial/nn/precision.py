"""Products in bfloat16: of a network's body, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def features_in(body: Callable[[Tensor], Tensor], x: Tensor, *, bfloat16: bool) -> Tensor:
    """What a body gives, in the type of x; with `bfloat16` by products in that type (autocast).

    Heads are left out: logits of 8 bits would rank what they are of by ties.
    """
    # Shapes alone, which tell a run's memory, have no autocast: float32 bounds it from above.
    if not bfloat16 or x.is_meta:
        return body(x)
    with torch.autocast(x.device.type, torch.bfloat16):
        return body(x).to(x.dtype)
