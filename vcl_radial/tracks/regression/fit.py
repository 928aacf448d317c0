"""Training of lanes: Adam on the negative evidence lower bound, and the noise's own updates.

Of each lane, in nats per training point,

    L = E_q(w) E_q(tau) [-log N(y; f(x; w), 1/tau)] averaged over points + b KL(q(w) || p(w)) / N

with the weight b of the KL, 1 but for a tempered posterior, of which the weights see

    E tau / 2 * mean (y - f)^2 + b KL / N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vcl_radial.noise_precision import NoisePrecision
from vcl_radial.tracks.regression.adam import LaneAdam
from vcl_radial.tracks.regression.batches import LaneBatches, LaneData
from vcl_radial.tracks.regression.compiled import CompiledLanes
from vcl_radial.tracks.regression.network import LaneNetwork, Noise, outputs

_NOISE_STEP = 0.01
"""Of the noise's updates from batches, each of which is as noisy as a batch is."""

_FINAL_DRAWS = 50
"""Weight samples with which the noise is set at the end, on all points."""

_CHUNK_STEPS, _CHUNK_ROWS = 64, 16_384
"""Random numbers are made for so many steps at once, fewer where batches are large."""

OnStep = Callable[[int], None]
"""Called with the number of steps that are done."""


@dataclass(frozen=True)
class FitSettings:
    """How lanes of one program are trained.

    Attributes:
        steps: of Adam.
        batch_size: rows of a step's batch.
        train_samples: weight samples of a step, all on the same batch.
    """

    steps: int
    batch_size: int
    train_samples: int = 1


def gradient(
    network: LaneNetwork,
    precision: Tensor,
    kl_factor: Tensor,
    batch: tuple[Tensor, Tensor],
    noise: Noise,
) -> tuple[Tensor, Tensor]:
    """The gradient of every lane's L from a batch.

    Args:
        network: the lanes.
        precision: E tau of each lane, `[R]`.
        kl_factor: b / N of each lane, `[R]`.
        batch: inputs `[R, B, d]` and targets `[R, B]`.
        noise: of the draws, from `LaneNetwork.noise`.

    Returns:
        The gradient `[R, P]`, and the mean squared errors `[R]`.
    """
    x, y = batch
    parameters = network.parameters.requires_grad_()
    with torch.enable_grad():
        drawn, divergence = network.draw_with_kl(noise, kl_factor)
        squared_error = (outputs(drawn, x) - y.unsqueeze(1)).square().mean((1, 2))
        loss = precision / 2 * squared_error + divergence
        (of_all,) = torch.autograd.grad(loss.sum(), parameters)
    parameters.requires_grad_(False)
    return of_all, squared_error.detach()


def fit(
    network: LaneNetwork,
    noise: NoisePrecision,
    data: LaneData,
    rates: Tensor,
    settings: FitSettings,
    on_step: OnStep = lambda steps: None,
    *,
    kl_weights: Tensor | None = None,
    compiled: bool = True,
) -> LaneAdam:
    """Train the lanes, and set the noise to its optimum for what they have become.

    The learning rate falls linearly to 0 over the second half of the steps.

    Args:
        network: changed in place.
        noise: changed in place.
        data: the training data.
        rates: the learning rate of each lane, `[R]`.
        settings: steps, batches and samples.
        on_step: called with the steps that are done.
        kl_weights: b of each lane, `[R]`; None for 1.
        compiled: whether the compiled library may make the steps, where it can.

    Returns:
        The optimiser, with its moments.
    """
    adam = LaneAdam(network.parameters, rates)
    kl_factor = (torch.ones(network.lanes) if kl_weights is None else kl_weights) / data.points
    lanes = None
    if compiled:
        lanes = CompiledLanes.of(network, adam, noise, data, kl_factor, _NOISE_STEP)
    batches = LaneBatches(data.points, settings.batch_size, network.generators)
    chunk = max(1, min(_CHUNK_STEPS, _CHUNK_ROWS // batches.batch_size))
    done = 0
    while done < settings.steps:
        # A whole chunk always, the last one too: what a lane draws depends on nothing else.
        rows, samples = batches.take(chunk), settings.train_samples
        until = min(done + chunk, settings.steps)
        shares = [min(1.0, 2 * (1 - k / settings.steps)) for k in range(done, until)]
        if lanes is not None:
            random = network.random(chunk * samples, batches.batch_size)
            lanes.steps(rows, random, shares, samples)
        else:
            draws = network.noise(chunk, samples, batches.batch_size)
            for share, of_step, draw in zip(shares, rows, draws, strict=False):
                batch = data.rows(of_step)
                slope, squared_error = gradient(network, noise.mean, kl_factor, batch, draw)
                adam.step(slope, share)
                noise.update(squared_error, _NOISE_STEP)
        done = until
        on_step(done)
    noise.update(expected_squared_error(network, data))
    return adam


@torch.no_grad()
def expected_squared_error(network: LaneNetwork, data: LaneData) -> Tensor:
    """E_q mean_n (y_n - f(x_n; w))^2 of each lane over all its points, `[R]`."""
    total = torch.zeros(network.lanes)
    for outputs_of_draws in network.functions(_FINAL_DRAWS, data.x):
        for f in outputs_of_draws:
            total += data.mean_over_points((f - data.y).square())
    return total / _FINAL_DRAWS
