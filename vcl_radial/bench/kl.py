"""The corrected radial KL against the forward pass, over the number of weights D of one group.

The closed form is O(D) and draws nothing: its time grows as that of any pass over the weights.
The forward pass is that of a square layer with D weights for one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn.functional import linear

from vcl_radial.bench.setting import Result, Row, Setting, row
from vcl_radial.bench.timing import Work, interleaved, ratios, times_to_fill
from vcl_radial.posteriors import Radial

BATCH = 1024
FORWARD = "forward pass"


def measure(setting: Setting) -> Result:
    """Seconds of value, gradient and forward pass, and the first two over the last."""
    rows: list[Row] = []
    for D in setting.sizes.group_sizes:
        work = _work(D, setting.device)
        clock, unit = setting.clock, setting.sizes.unit_seconds
        counts = {name: times_to_fill(unit, once, clock) for name, once in work.items()}
        units = {name: _again(once, counts[name]) for name, once in work.items()}
        calls = interleaved(units, setting.repeats, clock, warm_up=0)
        seconds = {name: [t / counts[name] for t in times] for name, times in calls.items()}
        to_forward = ratios(seconds, FORWARD)
        for name, times in seconds.items():
            rows.append(row("kl", name, f"D={D}", "seconds", times))
            if name != FORWARD:
                rows.append(
                    row("kl", name, f"D={D}", "ratio to the forward pass", to_forward[name])
                )
    return Result(rows, [f"The forward pass is that of a square layer for {BATCH} rows."])


def _work(D: int, device: str) -> dict[str, Work]:
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


def _again(once: Work, count: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(count):
            once()

    return work
