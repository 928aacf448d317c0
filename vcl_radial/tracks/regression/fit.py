"""Training of lanes: Adam on the negative evidence lower bound, and updates of the noise.

The loss of each lane, in nats per training point, is

    L = E_q(w) E_q(tau) [-log N(y; f(x; w), 1/tau)] averaged over points + b KL(q(w) || p(w)) / N

with the weight b of the KL, which is 1 except for a tempered posterior. The weights are trained on

    E tau / 2 * mean (y - f)^2 + b KL / N.

The steps are made by `vcl_radial.nn.lane_step`, or many in one call by the compiled library
(`vcl_radial.nn.compiled_lanes`). Their random numbers are drawn beforehand, lane by lane, from the
lane's generator, so that a lane ends with the same numbers as the run alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vcl_radial.likelihoods.noise_precision import BATCH_STEP, NoisePrecision
from vcl_radial.nn.compiled_lanes import CompiledLanes
from vcl_radial.nn.lane_step import LaneSettings, LaneStep
from vcl_radial.nn.lanes import Lanes
from vcl_radial.optimizers.schedules import linear_tail
from vcl_radial.tracks.regression.batches import LaneBatches, LaneData

FINAL_DRAWS = 50
"""Number of weight samples to set the noise at the end, on all points."""

_CHUNK_STEPS, _CHUNK_ROWS = 64, 16_384
"""Maximum number of steps whose random numbers are drawn at once."""

OnStep = Callable[[int], None]
"""A function of the number of steps that are done."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of the training of lanes.

    Attributes:
        steps: number of Adam steps.
        batch_size: rows of a step's batch.
        train_samples: weight samples of a step, all on the same batch.
    """

    steps: int
    batch_size: int
    train_samples: int = 1


def fit(
    lanes: Lanes,
    generators: Sequence[torch.Generator],
    noise: NoisePrecision,
    data: LaneData,
    rates: Sequence[float],
    settings: FitSettings,
    on_step: OnStep = lambda steps: None,
    *,
    kl_weight: Sequence[float] | None = None,
    prior_precision: Mapping[str, Tensor] | None = None,
    compiled: bool = True,
) -> LaneStep:
    """Train the lanes, and set the noise to its optimum for the trained lanes.

    The learning rate falls linearly to 0 over the second half of the steps.

    Args:
        lanes: the lanes, changed in place.
        generators: a generator of each lane's batches and draws.
        noise: the noise precision, changed in place.
        data: the training data.
        rates: the learning rate of each lane, `[R]`.
        settings: steps, batches and samples.
        on_step: called with the steps that are done.
        kl_weight: b of each lane, `[R]`; None for 1.
        prior_precision: prior precision of point estimates by name, `[R]`.
        compiled: whether the compiled library may make the steps.

    Returns:
        The step, with its optimiser.
    """
    samples, points = settings.train_samples, data.points.tolist()

    def loss(outputs: Tensor, y: Tensor) -> Tensor:
        return noise.mean / 2 * (outputs.squeeze(-1) - y).square().mean(1)

    step = LaneStep(
        lanes,
        [
            LaneSettings(rate, rate, weight / N)
            for rate, weight, N in zip(rates, kl_weight or [1.0] * len(rates), points, strict=True)
        ],
        generators,
        *data.table,
        samples=samples,
        loss=loss,
        prior_precision=prior_precision,
    )
    many = CompiledLanes.if_supported(step, noise) if compiled else None
    batches = LaneBatches(data.points, settings.batch_size, generators)
    chunk = max(1, min(_CHUNK_STEPS, _CHUNK_ROWS // batches.batch_size))
    done = 0
    while done < settings.steps:
        # Draw a whole chunk for the last steps too, so that draws do not depend on their number.
        rows = data.in_table(batches.take(chunk))
        drawn = lanes.noise(chunk * samples, batches.batch_size, generators)
        until = min(done + chunk, settings.steps)
        shares = [linear_tail(k / settings.steps) for k in range(done, until)]
        if many is not None:
            many.steps(rows, drawn, shares)
        else:
            for k, share in enumerate(shares):
                step.scale_rates([share] * len(lanes))
                losses = step(rows[k], drawn.part(slice(k * samples, (k + 1) * samples)))
                noise.update(losses * 2 / noise.mean, BATCH_STEP)
        done = until
        on_step(done)
    noise.update(expected_squared_error(lanes, data, generators))
    return step


@torch.no_grad()
def expected_squared_error(
    lanes: Lanes, data: LaneData, generators: Sequence[torch.Generator]
) -> Tensor:
    """E_q mean_n (y_n - f(x_n; w))^2 of each lane over all its points, `[R]`."""
    total = torch.zeros(len(lanes))
    for outputs in lanes.functions(data.x, FINAL_DRAWS, generators):
        for f in outputs.squeeze(-1):
            total += data.mean_over_points((f - data.y).square())
    return total / FINAL_DRAWS
