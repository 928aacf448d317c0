"""A step of the regression track: compiled, in PyTorch, a network by itself.

The networks and data have the shape of boston's: 13 inputs, 50 hidden units, 455 rows, 20 splits.
Lanes by the compiled library, the same lanes in PyTorch, and a network by itself in a plain loop
with autograd and PyTorch's own Adam.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Result, Setting, rows_of
from benchmarks.speed.timing import Work, interleaved, ratios
from vcl_radial import native
from vcl_radial.nn import MLP, PosteriorSettings
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.noise_precision import NoisePrecision
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.fit import FitSettings, fit

LANES, ROWS, WIDTHS, BATCH = 20, 455, (13, 50, 1), 64
REFERENCE = "radial, compiled"
RATIO = f"ratio to {REFERENCE}"
PICTURES = (Ratios("regression", f"A step of a lane, {RATIO}", RATIO),)

_NOISE = 0.0025
"""Of a weight at the start, as in the recipes."""


def measure(setting: Setting) -> Result:
    """Seconds of a lane's step, and their ratio to a compiled radial one's."""
    steps, x, y = setting.sizes.regression_steps, torch.randn(ROWS, WIDTHS[0]), torch.randn(ROWS)
    work: dict[str, Work] = {}
    for name, posterior in _POSTERIORS.items():
        for how, compiled in (("compiled", True), ("PyTorch", False)):
            work[f"{name}, {how}"] = partial(_train_lanes, posterior, x, y, steps, compiled)
    alone = "point estimates, a network by itself"
    work[alone] = partial(_train_alone, x, y, steps)
    calls = interleaved(work, setting.repeats, setting.clock)
    seconds = {
        name: [t / steps / (1 if name == alone else LANES) for t in times]
        for name, times in calls.items()
    }
    to_reference = {REFERENCE: [1.0] * setting.repeats, **ratios(seconds, REFERENCE)}
    rows = rows_of("regression", seconds, "seconds per step of a lane")
    rows += rows_of("regression", to_reference, RATIO)
    return Result(rows, [_note(steps)])


_Posterior: TypeAlias = PosteriorSettings | RDPSettings | None
_POSTERIORS: Mapping[str, _Posterior] = {
    "radial": PosteriorSettings("radial", initial_noise=_NOISE),
    "mfvi": PosteriorSettings("gaussian", initial_noise=_NOISE),
    "rdp": RDPSettings("double", _NOISE, prior_length=0.5),
    "point estimates": None,
}


def _train_lanes(posterior: _Posterior, x: Tensor, y: Tensor, steps: int, compiled: bool) -> None:
    inputs, hidden, outputs = WIDTHS
    networks = [
        MLP(
            inputs,
            outputs,
            hidden=[hidden],
            multi_head=False,
            posterior=posterior,
            point_heads=isinstance(posterior, RDPSettings),  # one output has no direction
        )
        for _ in range(LANES)
    ]
    lanes = Lanes(networks, 0)
    generators = [torch.Generator().manual_seed(lane) for lane in range(LANES)]
    data = LaneData.of([(x, y)] * LANES)
    noise, settings = NoisePrecision(data.points, (1.0, 1e-3)), FitSettings(steps, BATCH)
    precision = {name: torch.ones(LANES) for name in lanes.points}
    fit(
        lanes,
        generators,
        noise,
        data,
        [1e-3] * LANES,
        settings,
        prior_precision=precision,
        compiled=compiled,
    )


def _train_alone(x: Tensor, y: Tensor, steps: int) -> None:
    inputs, hidden, outputs = WIDTHS
    network = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(steps):
        rows = torch.randint(ROWS, (BATCH,))
        optimizer.zero_grad()
        loss = (network(x[rows]).squeeze(1) - y[rows]).square().mean()
        loss.backward()
        optimizer.step()


def _note(steps: int) -> str:
    used = "was in use" if (reason := native.unavailable()) is None else f"was not ({reason})"
    return (
        f"{LANES} lanes of {steps} steps with batches of {BATCH}; {WIDTHS[0]} inputs, {WIDTHS[1]} "
        "units. Drawing batches and weights is in it, and setting the noise at the end. The "
        f"compiled library {used}."
    )
