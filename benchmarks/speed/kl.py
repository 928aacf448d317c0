"""The corrected radial KL against forward passes, over the number of weights D of one group.

The closed form is O(D) and draws nothing: its time grows as that of any pass over the weights,
whatever layer they belong to. The forward passes are those of layers with D weights for one batch:
a fully connected one, which uses each weight once for a row, and a 3x3 convolution, which uses it
once for each place of an image.
"""

from __future__ import annotations

import math

import torch
from torch.nn.functional import conv2d, linear

from benchmarks.speed.pictures import Growth
from benchmarks.speed.setting import Result, Row, Setting, rows_of
from benchmarks.speed.timing import Work, measure_in_turn, ratios, timed_calls
from vcl_radial.posteriors import Radial

PICTURES = (Growth("kl", "Cost of the radial KL"),)
BATCH = 1024
SIDE = 4
"""Side of the images of a convolution: small, as where a network has the most weights."""

FORWARD, CONVOLUTION = "forward pass", "forward pass, convolution"
_RATIOS = {FORWARD: "ratio to the forward pass", CONVOLUTION: "ratio to a convolution's"}


def measure(setting: Setting) -> Result:
    """Seconds of value, gradient and forward passes, and the first two over each of the others."""
    rows: list[Row] = []
    for D in setting.sizes.group_sizes:
        calls = {
            name: timed_calls(work, setting.clock, "seconds", setting.sizes.unit_seconds)
            for name, work in _work(D, setting.device).items()
        }
        table = measure_in_turn(calls, setting.repeats)
        for reference, metric in _RATIOS.items():
            to_forward = ratios(table["seconds"], reference)
            table[metric] = {k: v for k, v in to_forward.items() if k not in _RATIOS}
        rows += rows_of("kl", table, f"D={D}")
    note = (
        f"The forward pass is that of a square layer for {BATCH} rows, and that of a 3x3 "
        f"convolution with as many channels as it is given for {BATCH} images of {SIDE}x{SIDE}."
    )
    return Result(rows, [note])


def _work(D: int, device: str) -> dict[str, Work]:
    mean, prior_mean = torch.randn(2, 1, D, device=device)
    scale, prior_scale = torch.rand(2, 1, D, device=device) + 0.5
    posterior, prior = Radial(mean, scale), Radial(prior_mean, prior_scale)
    a, s = (mean - prior_mean) / prior_scale, scale / prior_scale
    side, channels = math.isqrt(D), math.isqrt(D // 9)
    x, weight = torch.randn(BATCH, side, device=device), torch.randn(side, side, device=device)
    images = torch.randn(BATCH, channels, SIDE, SIDE, device=device)
    kernel = torch.randn(channels, channels, 3, 3, device=device)
    return {
        "value": lambda: posterior.kl(prior),
        "gradient alone": lambda: Radial.kl_gradients(Radial, [(a, s)]),
        FORWARD: lambda: linear(x, weight),
        CONVOLUTION: lambda: conv2d(images, kernel, padding=1),
    }
