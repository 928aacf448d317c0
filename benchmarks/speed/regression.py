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
from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MLP, PosteriorSettings
from vcl_radial.nn.lanes import point_estimates
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.training.lane_data import LaneData
from vcl_radial.training.lanes import LaneRun, LaneTrainer

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
    lanes = []
    for seed in range(LANES):
        network = MLP(
            INPUTS,
            1,
            hidden=[HIDDEN],
            multi_head=False,
            point_heads=point_head,
            posterior=posterior,
        )
        method = (Naive if posterior is None else VCL)(network, likelihood=Gaussian())
        precision = dict.fromkeys(point_estimates(network, 0), torch.ones(()))
        lanes.append(LaneRun(method, lambda task, seed=seed: seed, prior_precision=precision))  # type: ignore[misc]
    trainer = LaneTrainer(lanes, batch_size=BATCH, steps=steps, compiled=compiled)
    next(trainer.steps([LaneData.of([(x, y)] * LANES)]))


def _train_alone(x: Tensor, y: Tensor, steps: int) -> None:
    network = nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(steps):
        rows = torch.randint(ROWS, (BATCH,))
        optimizer.zero_grad()
        loss = (network(x[rows]).squeeze(1) - y[rows]).square().mean()
        loss.backward()
        optimizer.step()
