"""The corrected radial KL against forward passes, over the number of weights D of one group.

The closed form is O(D) and draws nothing: its time grows as that of any pass over the weights,
whatever layer they belong to. The forward passes are those of layers with D weights for one batch:
a fully connected one, which uses each weight once for a row, and a 3x3 convolution, which uses it
once for each place of an image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch.nn.functional import conv2d, linear

from benchmarks.speed.pictures import Growth
from benchmarks.speed.setting import Result, Row, Setting, row
from benchmarks.speed.timing import Work, interleaved, ratios, times_to_fill
from vcl_radial.posteriors import Radial

PICTURES = (Growth("kl", "Cost of the radial KL"),)
BATCH = 1024
SIDE = 4
"""Of the images of a convolution: as small as they are where a network has the most weights."""

FORWARD = "forward pass"
CONVOLUTION = "forward pass, convolution"
_RATIOS = {FORWARD: "ratio to the forward pass", CONVOLUTION: "ratio to a convolution's"}


def measure(setting: Setting) -> Result:
    """Seconds of value, gradient and forward passes, and the first two over each of the others."""
    rows: list[Row] = []
    for D in setting.sizes.group_sizes:
        seconds = seconds_per_call(_work(D, setting.device), setting.repeats, setting)
        to_forward = {reference: ratios(seconds, reference) for reference in _RATIOS}
        for name, times in seconds.items():
            rows.append(row("kl", name, f"D={D}", "seconds", times))
            if name not in _RATIOS:
                rows += [
                    row("kl", name, f"D={D}", metric, to_forward[reference][name])
                    for reference, metric in _RATIOS.items()
                ]
    return Result(
        rows,
        [
            f"The forward pass is that of a square layer for {BATCH} rows, and that of a 3x3 "
            f"convolution with as many channels as it is given for {BATCH} images of {SIDE}x{SIDE}."
        ],
    )


def seconds_per_call(
    work: Mapping[str, Work], repeats: int, setting: Setting
) -> dict[str, list[float]]:
    """Seconds of one call of each in every round, of as many calls as fill a unit."""
    clock, unit = setting.clock, setting.sizes.unit_seconds
    counts = {name: times_to_fill(unit, once, clock) for name, once in work.items()}
    units = {name: _again(once, counts[name]) for name, once in work.items()}
    calls = interleaved(units, repeats, clock, warm_up=0)
    return {name: [t / counts[name] for t in times] for name, times in calls.items()}


def _work(D: int, device: str) -> dict[str, Work]:
    mean, prior_mean = torch.randn(2, 1, D, device=device)
    scale, prior_scale = torch.rand(2, 1, D, device=device) + 0.5
    posterior, prior = Radial(mean, scale), Radial(prior_mean, prior_scale)
    a, s = (mean - prior_mean) / prior_scale, scale / prior_scale
    side = math.isqrt(D)
    x, weight = torch.randn(BATCH, side, device=device), torch.randn(side, side, device=device)
    channels = math.isqrt(D // 9)
    images = torch.randn(BATCH, channels, SIDE, SIDE, device=device)
    kernel = torch.randn(channels, channels, 3, 3, device=device)
    return {
        "value": lambda: posterior.kl(prior),
        "gradient alone": lambda: Radial.kl_gradients(Radial, [(a, s)]),
        FORWARD: lambda: linear(x, weight),
        CONVOLUTION: lambda: conv2d(images, kernel, padding=1),
    }


def _again(once: Work, count: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(count):
            once()

    return work
