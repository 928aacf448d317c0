"""Predictive bands of a toy regression (BAdam Fig. 1).

    y = x + 0.3 sin(2 pi (x + e)) + 0.3 sin(4 pi (x + e)) + e,    e ~ N(0, 0.02^2)

seen for x in (0, 0.5), predicted from -0.5 to 1.2. The networks, their training and their
predictions come from `vcl_radial.tracks.regression`, with one more layer; VADAM comes from
`vcl_radial.optimizers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from reports.figures import curve, sheet_of
from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill, of_one_run
from vcl_radial.errors import Diverged
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.noise_precision import BATCH_STEP, NoisePrecision
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.nn import GaussianNetwork
from vcl_radial.nn.dropout import MCDropout
from vcl_radial.optimizers.schedules import linear_tail
from vcl_radial.optimizers.vadam import Vadam
from vcl_radial.reporting.figures.drawing import DASHED, Curve, find, key_line, line
from vcl_radial.reporting.figures.style import INK, QUIET_INK, method_styles
from vcl_radial.tracks.regression.data import Standardiser
from vcl_radial.tracks.regression.jacobian import jacobians, lane_network
from vcl_radial.tracks.regression.lane_method import LaneMethod
from vcl_radial.tracks.regression.lanes import badam, mc_dropout, vcl
from vcl_radial.tracks.regression.learner import Job
from vcl_radial.tracks.regression.seeds import derived
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.training.lane_data import LaneBatches, LaneData

POINTS = 200
SEEN, SHOWN = (0.0, 0.5), (-0.5, 1.2)
"""Ranges of the training points and of the predictions."""
HIDDEN, QUICK_HIDDEN = 50, 20
STEPS, QUICK_STEPS = 6_000, 1_000
DROPOUT = 0.1
VADAM_NOISE = 0.1
OTHER_VADAM_NOISE = (0.01, 1.0)
"""Initial noise of a weight in further runs of VADAM."""
VADAM_RECIPE = {"batch_size": 1, "learning_rate": 1e-2}
"""A batch's squared gradient is about 1/B of the curvature that it approximates: with 128 points
per batch, VADAM's weights stay so noisy that it does not learn the curve."""
AWAY = (-0.5, 1.0)
"""Half a unit from the data, on either side."""

BADAM, LAPLACE, BBB, VADAM = "BAdam", "linearised Laplace", "BBB", "VADAM"
METHODS = {
    BADAM: "badam",
    LAPLACE: "laplace-linearised",
    BBB: "gaussian-vcl",
    VADAM: "vadam",
    "MC dropout": "mc-dropout",
    "radial (not in the paper)": "radial-vcl",
}
"""The methods of the suite that the panels show."""

Predict: TypeAlias = Callable[[Job], Mixture]
"""Trains the lanes of a job, and predicts."""


class Prediction(NamedTuple):
    """Mean and standard deviation of the target at every point, noise included."""

    mean: Tensor
    sd: Tensor


def truth(x: Tensor, noise: Tensor | float = 0.0) -> Tensor:
    """The target at x; the noise e is also inside the sines."""
    phase = 2 * math.pi * (x + noise)
    return x + 0.3 * phase.sin() + 0.3 * (2 * phase).sin() + noise


def make_data(seed: int) -> tuple[Tensor, Tensor]:
    """Inputs at equal distances in (0, 0.5) and their targets, `[200]` each; float64."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.arange(POINTS, dtype=torch.float64) * ((SEEN[1] - SEEN[0]) / POINTS)
    noise = 0.02 * torch.randn(POINTS, generator=generator, dtype=torch.float64)
    return x, truth(x, noise)


def analyse(setting: Setting) -> Analysis:
    """Train every method on the same points, and predict on both sides of them."""
    data = make_data(setting.seed)
    steps, hidden = (QUICK_STEPS, QUICK_HIDDEN) if setting.quick else (STEPS, HIDDEN)
    points = torch.linspace(*SHOWN, 171, dtype=torch.float64)
    recipe = Recipe(
        strategy="badam", posterior="gaussian", batch_size=128, steps=steps, noise_rate=1e-3
    )

    def band(panel: str, name: str, predict: Predict, settings: Mapping[str, object]) -> Curve:
        """The mean with a band of two standard deviations."""
        changed = recipe.model_copy(update=settings)
        mean, sd = predict_with(predict, changed, hidden, *data, points)
        low, high = mean - 2 * sd, mean + 2 * sd
        return Curve(panel, name, *(t.tolist() for t in (points, mean, low, high)))

    bands = []
    for name, (predict, settings) in methods().items():
        bands.append(band("prediction", name, predict, settings))
        setting.say(f"{name}: RMSE of the mean amid the data {_error(bands[-1]):.3f}")
    further = [
        band("VADAM", f"noise starts at {noise:g}", _vadam(noise), VADAM_RECIPE)
        for noise in OTHER_VADAM_NOISE
    ]
    curves = [
        curve("data", "training points", *data),
        curve("data", "without noise", points, truth(points)),
        *bands,
    ]
    texts = _texts(bands, further, {"seed": setting.seed, "steps_made": steps, "hidden": hidden})
    return Analysis(curves=[*curves, *further], figure=draw(curves), **texts)


def _vadam(initial_noise: float) -> Predict:
    return partial(predict_by_vadam, initial_noise=initial_noise)


def methods() -> dict[str, tuple[Predict, Mapping[str, object]]]:
    """The prediction of each method, and the keys of its recipe that differ from BAdam's."""
    dropout = {"options": {"rate": DROPOUT}, "prior_scale": 10.0}
    predictions: list[tuple[Predict, Mapping[str, object]]] = [
        (learnt_by(badam.Lanes), {}),
        (learnt_by(Laplace), {}),
        (learnt_by(vcl.Lanes), {"strategy": "vcl"}),
        (_vadam(VADAM_NOISE), VADAM_RECIPE),
        (learnt_by(Dropout), dropout),
        (learnt_by(vcl.Lanes), {"strategy": "vcl", "posterior": "radial"}),
    ]
    return dict(zip(METHODS, predictions, strict=True))


def learnt_by(lanes: type[LaneMethod]) -> Predict:
    """The predictive of a method's lanes after training."""
    return lambda job: lanes(job).learn()


def predict_with(
    predict: Predict,
    recipe: Recipe,
    hidden: int,
    x: Tensor,
    y: Tensor,
    points: Tensor,
    seed: int = 0,
) -> Prediction:
    """Train on standardised data and predict in the original units.

    Args:
        predict: a method of the regression track.
        recipe: its settings.
        hidden: units of each hidden layer.
        x: inputs `[N]`.
        y: targets `[N]`.
        points: inputs of the predictions, `[n]`.
        seed: seed of the training.

    Raises:
        Diverged: a prediction is no finite number.
    """
    scaled = Standardiser.of(x[:, None], y)
    inputs = scaled.inputs(points[:, None]).float()
    job = Job(
        [recipe],
        [seed],
        [LaneData.of([(scaled.inputs(x[:, None]), scaled.targets(y))])],
        inputs[None],
        [hidden, hidden],
    )
    mixture = predict(job)
    means = mixture.mean.double()[:, 0]
    component = mixture.scale.double().square()
    if mixture.degrees is not None:  # the variance of a Student-t distribution
        component = component * mixture.degrees / (mixture.degrees - 2)
    variance = component.expand_as(mixture.mean)[:, 0].mean(0) + means.var(0, correction=0)
    if not torch.isfinite(variance).all():
        raise Diverged("a prediction is no finite number: lower the learning rate")
    unit = float(scaled.y_scale)
    return Prediction(scaled.original_targets(means.mean(0)), variance.sqrt() * unit)


class Laplace(LaneMethod):
    """Laplace about BAdam's weights with BAdam's prior and noise: only the curvature differs.

    y | x ~ N(f(x; w*), J (E tau sum_n J_n' J_n + I / prior_scale^2)^-1 J' + 1 / E tau)
    """

    def predict(self) -> Mixture:
        """Predict by the network linearised about its weights."""
        network, tau = lane_network(self.lanes, 0), float(self.noise.mean)
        weights = sum(p.numel() for p in network.parameters())
        precision = torch.eye(weights, dtype=torch.float64) / self.job.recipe.one_prior_scale**2
        for _, J in jacobians(network, self.slices[0].x[0]):
            precision.addmm_(J.T, J, alpha=tau)
        root = torch.linalg.cholesky(precision)
        means, scales = [], []
        for f, J in jacobians(network, self.x[0]):
            whitened = torch.linalg.solve_triangular(root, J.T, upper=False)
            means.append(f)
            scales.append((whitened.square().sum(0) + 1 / tau).sqrt())
        return Mixture(torch.cat(means)[None, None], torch.cat(scales)[None, None])


class Dropout(mc_dropout.Lanes):
    """MC dropout in the hidden layers: the one input is not dropped."""

    def network(self, recipe: Recipe) -> nn.Module:
        """A network whose first dropout does nothing."""
        network = super().network(recipe)
        next(module for module in network.modules() if isinstance(module, MCDropout)).p = 0.0
        return network


def predict_by_vadam(job: Job, initial_noise: float) -> Mixture:
    """VADAM on the ELBO; the noise precision is updated as in `vcl_radial.training.lanes`.

    The loss is E tau / 2 (y - f)^2 averaged over points; the learning rate falls linearly to 0 over
    the second half of the steps.
    """
    lane = LaneMethod(job).trainer.lanes[0]
    (data,), (seed,) = job.slices, job.seeds
    with seeded_rng(derived(seed, "training"), torch.device("cpu")):
        network = GaussianNetwork(
            lane.method.network,
            prior_scale=job.recipe.one_prior_scale,
            initial_noise=initial_noise,
        )
        noise = NoisePrecision(data.points, (job.recipe.noise_shape, job.recipe.noise_rate))
        rate, steps = job.recipe.learning_rate, job.recipe.steps
        optimizer = Vadam(network.start([0]), lr=rate, ess=float(data.points[0]))
        generator = torch.Generator().manual_seed(derived(seed, "batches"))
        batches = LaneBatches(data.points, job.recipe.batch_size, [generator])
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate * linear_tail(step / steps)
            rows = batches.take(1)[0, 0]
            error = network(data.x[0, rows]).squeeze(1) - data.y[0, rows]
            squares = error.square().mean()
            optimizer.zero_grad()
            (float(noise.mean) / 2 * squares).backward()
            optimizer.step()
            noise.update(squares.detach()[None], BATCH_STEP)
        with torch.no_grad():
            outputs = [network(data.x[0]).squeeze(1) for _ in range(50)]
            noise.update((torch.stack(outputs) - data.y).square().mean()[None])
            draws = [network(job.x[0]).squeeze(1) for _ in range(job.recipe.eval_samples)]
    return Mixture.under_noise(torch.stack(draws)[:, None], noise)


def _error(curve: Curve) -> float:
    """RMSE of the mean to the target without noise, within the range of the data."""
    x, y = (torch.tensor(values, dtype=torch.float64) for values in (curve.x, curve.y))
    amid = (x >= SEEN[0]) & (x < SEEN[1])
    return float((y - truth(x)).square()[amid].mean().sqrt())


def width(curve: Curve, *points: float) -> float:
    """Mean of one standard deviation at the positions nearest to some points."""
    x, y, high = (np.asarray(values, float) for values in (curve.x, curve.y, curve.high))
    nearest = [abs(x - point).argmin() for point in points]
    return float(((high - y)[nearest] / 2).mean())


def _amid(curve: Curve) -> float:
    """One standard deviation in the middle of the data."""
    return width(curve, sum(SEEN) / 2)


def _away(curve: Curve) -> float:
    """Mean of one standard deviation half a unit from the data, on both sides."""
    return width(curve, *AWAY)


def _texts(
    bands: Sequence[Curve], further: Sequence[Curve], sizes: Mapping[str, int]
) -> dict[str, Any]:
    by_name = {band.name: band for band in bands}
    bayes_adam, laplace = by_name[BADAM], by_name[LAPLACE]
    widths = [width(bayes_adam, x) for x in (0.25, 0.6, 0.8, 1.0, 1.2)]
    right = [float(x) for x in bayes_adam.x if float(x) >= sum(SEEN) / 2]
    jump = max(abs(b - a) for a, b in pairwise(width(bayes_adam, x) for x in right))
    vadam = [by_name[VADAM], *further]
    errors, away = [_error(band) for band in vadam], [_away(band) for band in vadam]
    started = zip((VADAM_NOISE, *OTHER_VADAM_NOISE), errors, away, strict=True)

    def both_widths(*names: str) -> str:
        pairs = ((name, _amid(by_name[name]), _away(by_name[name])) for name in names)
        return ", ".join(f"{name} {amid:.2f} and {away:.2f}" for name, amid, away in pairs)

    numbers = {
        **sizes,
        "points": POINTS,
        "seen": str(SEEN),
        "dropout": DROPOUT,
        "vadam_noise": VADAM_NOISE,
        "steps": widths,
        "jump": jump,
        "laplace": both_widths(BADAM, LAPLACE),
        "others": both_widths(BBB, VADAM, BADAM),
        "started": "; ".join(f"{noise:g}: {e:.3f}, {sd:.2f}" for noise, e, sd in started),
        "away": ", ".join(f"{name} {_away(band):.2f}" for name, band in by_name.items()),
    }
    alike = {
        "gradually": all(a < b for a, b in pairwise(widths))
        and jump < 0.1 * (widths[-1] - widths[0]),
        "laplace": all(0.5 < f(bayes_adam) / f(laplace) < 2 for f in (_amid, _away)),
        "others": max(_away(by_name[BBB]), _away(by_name[VADAM])) < _away(bayes_adam),
        "sensitive": max(errors) > 1.5 * min(errors) or max(away) > 1.5 * min(away),
    }
    return fill(__file__, numbers, {key: of_one_run(holds) for key, holds in alike.items()})


def draw(curves: Sequence[Curve]) -> Figure:
    """The picture: the first curves are the training points and the target without noise."""
    data, target = curves[:2]
    styles = method_styles([*METHODS.values()])
    key = [key_line("without noise", QUIET_INK, linestyle=DASHED)]
    with sheet_of(__file__, titles=list(METHODS), key=key) as (figure, panels):
        for axes, (name, method) in zip(panels, METHODS.items(), strict=True):
            line(axes, find(curves, "prediction", name), styles[method].colour)
            axes.plot(target.x, target.y, color=QUIET_INK, linewidth=0.9, linestyle=DASHED)
            axes.plot(data.x, data.y, ".", color=INK, markersize=1.5)
            axes.set(xlim=SHOWN, ylim=(-3.5, 4), xlabel="x", ylabel="y")
    return figure
