"""A step of the regression track: compiled, in PyTorch, a network by itself.

The networks and data have the shape of boston's: 13 inputs, 50 hidden units, 455 rows, 20 splits.
20 lanes of 1,000 steps with batches of 64 by the compiled library, the same lanes in PyTorch, and a
network by itself in a plain loop with autograd and PyTorch's own Adam. Drawing batches and weights
is in it, and setting the noise at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Row, Setting, compare
from benchmarks.speed.timing import Measurement, timed
from vcl_radial.likelihoods.noise_precision import NoisePrecision
from vcl_radial.nn import MLP, PosteriorSettings
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.fit import FitSettings, fit

LANES, ROWS, INPUTS, HIDDEN, BATCH = 20, 455, 13, 50, 64
REFERENCE, SECONDS = "radial, compiled", "seconds per step of a lane"
RATIO = f"ratio to {REFERENCE}"
PICTURES = (Ratios("regression", f"A step of a lane, {RATIO}", RATIO),)

_NOISE = 0.0025
"""Initial noise of a weight, as in the recipes."""

_Posterior = PosteriorSettings | RDPSettings | None
_POSTERIORS: Mapping[str, _Posterior] = {
    "radial": PosteriorSettings("radial", initial_noise=_NOISE),
    "mfvi": PosteriorSettings("gaussian", initial_noise=_NOISE),
    "rdp": RDPSettings("double", _NOISE, prior_length=0.5),
    "point estimates": None,
}


def measure(setting: Setting) -> list[Row]:
    """Seconds of a lane's step, and their ratio to a compiled radial lane's."""
    steps, clock = setting.sizes.regression_steps, setting.clock
    x, y = torch.randn(ROWS, INPUTS), torch.randn(ROWS)
    work: dict[str, Measurement] = {}
    for name, posterior in _POSTERIORS.items():
        for how, compiled in (("compiled", True), ("PyTorch", False)):
            train = partial(_train_lanes, posterior, x, y, steps, compiled)
            work[f"{name}, {how}"] = timed(train, clock, SECONDS, steps * LANES)
    train = partial(_train_alone, x, y, steps)
    work["point estimates, a network by itself"] = timed(train, clock, SECONDS, steps)
    return compare(work, setting, SECONDS, reference=REFERENCE)


def _train_lanes(posterior: _Posterior, x: Tensor, y: Tensor, steps: int, compiled: bool) -> None:
    point_head = isinstance(posterior, RDPSettings)  # one output has no direction
    make = partial(MLP, INPUTS, 1, hidden=[HIDDEN], multi_head=False, point_heads=point_head)
    networks = [make(posterior=posterior) for _ in range(LANES)]
    lanes = Lanes(networks, 0)
    data = LaneData.of([(x, y)] * LANES)
    fit(
        lanes,
        [torch.Generator().manual_seed(lane) for lane in range(LANES)],
        NoisePrecision(data.points, (1.0, 1e-3)),
        data,
        [1e-3] * LANES,
        FitSettings(steps, BATCH),
        prior_precision={name: torch.ones(LANES) for name in lanes.points},
        compiled=compiled,
    )


def _train_alone(x: Tensor, y: Tensor, steps: int) -> None:
    network = nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(steps):
        rows = torch.randint(ROWS, (BATCH,))
        optimizer.zero_grad()
        loss = (network(x[rows]).squeeze(1) - y[rows]).square().mean()
        loss.backward()
        optimizer.step()
