"""The corrected radial KL against a forward pass, over the number of weights D of one group.

The closed form is O(D) and draws nothing: its time grows as that of any pass over the weights,
whatever layer they belong to. The forward pass is that of a square layer with D weights for 1,024
rows.
"""

from __future__ import annotations

import math

import torch
from torch.nn.functional import linear

from benchmarks.speed.pictures import Growth
from benchmarks.speed.setting import Row, Setting, compare
from benchmarks.speed.timing import Work, timed_calls
from vcl_radial.posteriors import Radial

BATCH = 1024
FORWARD = "the forward pass"
SECONDS = "seconds"
PICTURES = (Growth("kl", "Cost of the radial KL", (SECONDS, f"ratio to {FORWARD}")),)


def measure(setting: Setting) -> list[Row]:
    """Seconds of value, gradient and forward pass, and the first two over the last."""
    rows: list[Row] = []
    for D in setting.sizes.group_sizes:
        calls = {
            name: timed_calls(work, setting.clock, SECONDS, setting.sizes.unit_seconds)
            for name, work in work_of(D, setting.device).items()
        }
        rows += compare(calls, setting, SECONDS, reference=FORWARD, size=f"D={D}", warm_up=0)
    return rows


def work_of(D: int, device: str) -> dict[str, Work]:
    """The KL of a group of D weights, its gradient, and a forward pass with D weights."""
    mean, prior_mean = torch.randn(2, 1, D, device=device)
    scale, prior_scale = torch.rand(2, 1, D, device=device) + 0.5
    posterior, prior = Radial(mean, scale), Radial(prior_mean, prior_scale)
    a, s = (mean - prior_mean) / prior_scale, scale / prior_scale
    side = math.isqrt(D)
    x, weight = torch.randn(BATCH, side, device=device), torch.randn(side, side, device=device)
    return {
        "value": lambda: posterior.kl(prior),
        "gradient alone": lambda: Radial.kl_gradients(Radial, [(a, s)]),
        FORWARD: lambda: linear(x, weight),
    }
