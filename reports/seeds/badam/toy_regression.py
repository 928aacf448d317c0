"""Predictive bands of a toy regression (BAdam Fig. 1).

    y = x + 0.3 sin(2 pi (x + e)) + 0.3 sin(4 pi (x + e)) + e,    e ~ N(0, 0.02^2)

seen for x in (0, 0.5), predicted from -0.5 to 1.2. The networks, their training and their
predictions are those of `vcl_radial.tracks.regression`, with one layer more; VADAM is that of
`vcl_radial.optimizers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import torch
from matplotlib.figure import Figure
from torch import Tensor

from reports.papers.analysis import Analysis, Setting
from reports.papers.texts import fill, listed, of_one_run
from vcl_radial.errors import Diverged
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.noise_precision import BATCH_STEP
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.nn import GaussianNetwork
from vcl_radial.nn.dropout import MCDropout
from vcl_radial.optimizers.schedules import linear_tail
from vcl_radial.optimizers.vadam import Vadam
from vcl_radial.reporting.figures.drawing import DASHED, RADIAL, Curve, find, key_line, line, sheet
from vcl_radial.reporting.figures.style import INK, QUIET_INK
from vcl_radial.tracks.regression.batches import LaneBatches, LaneData
from vcl_radial.tracks.regression.data import Standardiser
from vcl_radial.tracks.regression.jacobian import jacobians, lane_network
from vcl_radial.tracks.regression.job import Job, derived
from vcl_radial.tracks.regression.lanes import badam, mc_dropout, vcl
from vcl_radial.tracks.regression.settings import Recipe

POINTS = 200
SEEN = (0.0, 0.5)
SHOWN = (-0.5, 1.2)
_PLACES = 171
HIDDEN, QUICK_HIDDEN = 50, 20
STEPS, QUICK_STEPS = 6_000, 1_000
DROPOUT = 0.1
VADAM_NOISE = 0.1
OTHER_VADAM_NOISE = (0.01, 1.0)
"""Initial noise of a weight in further runs of VADAM."""
VADAM_RECIPE = {"batch_size": 1, "learning_rate": 1e-2}
"""A batch's squared gradient is about 1/B of the curvature that it stands for: with 128 points a
batch, VADAM's weights stay so noisy that it does not learn the curve."""
AWAY = (-0.5, 1.0)
"""Half a unit from the data, on either side."""

BADAM, LAPLACE, BBB, VADAM, DROP, OURS = (
    "BAdam",
    "linearised Laplace",
    "BBB",
    "VADAM",
    "MC dropout",
    "radial (not in the paper)",
)

Predict: TypeAlias = Callable[[Job], Mixture]

_COLOURS = dict(
    zip(
        (BADAM, LAPLACE, BBB, VADAM, DROP, OURS),
        ("#d55e00", "#56b4e9", "#e69f00", "#009e73", "#cc79a7", RADIAL),
        strict=True,
    )
)


class Prediction(NamedTuple):
    """Mean and standard deviation of the target at every place, noise included."""

    mean: Tensor
    sd: Tensor


def truth(x: Tensor, noise: Tensor | float = 0.0) -> Tensor:
    """The target at x; the noise e enters the sines too."""
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
    x, y = make_data(setting.seed)
    steps, hidden = (QUICK_STEPS, QUICK_HIDDEN) if setting.quick else (STEPS, HIDDEN)
    places = torch.linspace(*SHOWN, _PLACES, dtype=torch.float64)
    curves = [
        Curve("data", "training points", x.tolist(), y.tolist()),
        Curve("data", "without noise", places.tolist(), truth(places).tolist()),
    ]
    recipe = Recipe(
        strategy="badam", posterior="gaussian", batch_size=128, steps=steps, noise_rate=1e-3
    )
    for name, (predict, settings) in _methods().items():
        changed = recipe.model_copy(update=settings)
        curve = _curve(
            "prediction", name, places, predict_with(predict, changed, hidden, x, y, places)
        )
        curves.append(curve)
        setting.say(f"{name}: RMSE of the mean amid the data {_error(curve, places):.3f}")
    further = []
    for noise in OTHER_VADAM_NOISE:
        changed = recipe.model_copy(update=VADAM_RECIPE)
        prediction = predict_with(_vadam(noise), changed, hidden, x, y, places)
        further.append(_curve("VADAM", f"noise starts at {noise:g}", places, prediction))
    return Analysis(
        curves=[*curves, *further], figure=_figure(curves), **_texts(curves, further, setting)
    )


def _curve(panel: str, name: str, places: Tensor, prediction: Prediction) -> Curve:
    """The mean with a band of two standard deviations."""
    low, high = prediction.mean - 2 * prediction.sd, prediction.mean + 2 * prediction.sd
    return Curve(
        panel, name, places.tolist(), prediction.mean.tolist(), low.tolist(), high.tolist()
    )


def _vadam(initial_noise: float) -> Predict:
    return partial(predict_by_vadam, initial_noise=initial_noise)


def _methods() -> dict[str, tuple[Predict, Mapping[str, object]]]:
    """Each method's prediction and the keys of the recipe that are its own."""
    return {
        BADAM: (badam.predict, {}),
        LAPLACE: (predict_by_laplace, {}),
        BBB: (vcl.predict, {"strategy": "vcl"}),
        VADAM: (_vadam(VADAM_NOISE), VADAM_RECIPE),
        DROP: (predict_by_dropout, {"options": {"rate": DROPOUT}, "prior_scale": 10.0}),
        OURS: (vcl.predict, {"strategy": "vcl", "posterior": "radial"}),
    }


def predict_with(
    predict: Predict, recipe: Recipe, hidden: int, x: Tensor, y: Tensor, places: Tensor
) -> Prediction:
    """Train on standardised data and predict in the original units.

    Args:
        predict: a method of the regression track.
        recipe: its settings.
        hidden: units of each hidden layer.
        x: inputs `[N]`.
        y: targets `[N]`.
        places: where to predict, `[n]`.

    Raises:
        Diverged: a prediction is no finite number.
    """
    scaled = Standardiser.of(x[:, None], y)
    inputs = scaled.inputs(places[:, None]).float()
    job = Job(
        [recipe],
        [0],
        LaneData.of([(scaled.inputs(x[:, None]), scaled.targets(y))]),
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


def predict_by_laplace(job: Job) -> Mixture:
    """Laplace about BAdam's own weights with its prior and noise: the curvature alone differs.

    y | x ~ N(f(x; w*), J (E tau sum_n J_n' J_n + I / prior_scale^2)^-1 J' + 1 / E tau)
    """
    lanes, noise = job.point_lanes(), job.noise()
    job.fit(lanes, noise)
    network, tau = lane_network(lanes, 0), float(noise.mean)
    weights = sum(p.numel() for p in network.parameters())
    precision = torch.eye(weights, dtype=torch.float64) / job.recipe.prior_scale**2
    for _, J in jacobians(network, job.train.x[0]):
        precision.addmm_(J.T, J, alpha=tau)
    root = torch.linalg.cholesky(precision)
    means, scales = [], []
    for f, J in jacobians(network, job.x[0]):
        function_variance = torch.linalg.solve_triangular(root, J.T, upper=False).square().sum(0)
        means.append(f)
        scales.append((function_variance + 1 / tau).sqrt())
    return Mixture(torch.cat(means)[None, None], torch.cat(scales)[None, None])


def predict_by_dropout(job: Job) -> Mixture:
    """MC dropout in the hidden layers: the one input is not dropped."""
    lanes = mc_dropout.make_lanes(job)
    for network in lanes.networks:
        next(module for module in network.modules() if isinstance(module, MCDropout)).p = 0.0
    return job.train_and_mix(lanes)


def predict_by_vadam(job: Job, initial_noise: float) -> Mixture:
    """VADAM on the ELBO, the noise precision as `vcl_radial.tracks.regression.fit` has it.

    The loss is E tau / 2 (y - f)^2 averaged over points; the learning rate falls linearly to 0 over
    the second half of the steps.
    """
    with seeded_rng(derived(job.seeds[0], "training"), torch.device("cpu")):
        network = GaussianNetwork(
            job.point_lanes().networks[0],
            prior_scale=job.recipe.prior_scale,
            initial_noise=initial_noise,
        )
        points, noise = job.train.points, job.noise()
        rate, steps = job.recipe.learning_rate, job.recipe.steps
        optimizer = Vadam(network.start([0]), lr=rate, ess=float(points[0]))
        batches = LaneBatches(points, job.recipe.batch_size, job.generators("batches"))
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate * linear_tail(step / steps)
            rows = batches.take(1)[0, 0]
            error = network(job.train.x[0, rows]).squeeze(1) - job.train.y[0, rows]
            squares = error.square().mean()
            optimizer.zero_grad()
            (float(noise.mean) / 2 * squares).backward()
            optimizer.step()
            noise.update(squares.detach()[None], BATCH_STEP)
        with torch.no_grad():
            outputs = [network(job.train.x[0]).squeeze(1) for _ in range(50)]
            noise.update((torch.stack(outputs) - job.train.y).square().mean()[None])
            draws = [network(job.x[0]).squeeze(1) for _ in range(job.recipe.eval_samples)]
    return Mixture.under_noise(torch.stack(draws)[:, None], noise)


def _seen(places: Tensor) -> Tensor:
    return (places >= SEEN[0]) & (places < SEEN[1])


def _error(curve: Curve, places: Tensor) -> float:
    """RMSE of the mean to the target without noise, where data were seen."""
    error = torch.tensor(curve.y, dtype=torch.float64) - truth(places)
    return float(error.square()[_seen(places)].mean().sqrt())


def width(curve: Curve, x: float) -> float:
    """One standard deviation at the place nearest to x."""
    assert curve.high is not None
    nearest = min(range(len(curve.x)), key=lambda k: abs(float(curve.x[k]) - x))
    return (curve.high[nearest] - curve.y[nearest]) / 2


def _away(curve: Curve) -> float:
    """The mean standard deviation half a unit from the data, on both sides."""
    return sum(width(curve, x) for x in AWAY) / len(AWAY)


def _inside(curve: Curve) -> float:
    """The same in the middle of the data."""
    return width(curve, sum(SEEN) / 2)


def _texts(curves: Sequence[Curve], further: Sequence[Curve], setting: Setting) -> dict[str, Any]:
    of = {name: find(curves, "prediction", name) for name in _COLOURS}
    steps = [width(of[BADAM], x) for x in (0.25, 0.6, 0.8, 1.0, 1.2)]
    right = [width(of[BADAM], float(x)) for x in of[BADAM].x if float(x) >= sum(SEEN) / 2]
    jump = max(abs(b - a) for a, b in pairwise(right))
    vadam = [of[VADAM], *further]
    places = torch.tensor(of[VADAM].x, dtype=torch.float64)
    errors, away = [_error(curve, places) for curve in vadam], [_away(curve) for curve in vadam]
    started = zip((VADAM_NOISE, *OTHER_VADAM_NOISE), errors, away, strict=True)
    steps_made, hidden = (QUICK_STEPS, QUICK_HIDDEN) if setting.quick else (STEPS, HIDDEN)

    def widths(*names: str) -> str:
        return ", ".join(f"{n} {_inside(of[n]):.2f} and {_away(of[n]):.2f}" for n in names)

    numbers = {
        "points": POINTS,
        "seen": str(SEEN),
        "hidden": hidden,
        "steps_made": steps_made,
        "seed": setting.seed,
        "dropout": DROPOUT,
        "vadam_noise": VADAM_NOISE,
        "steps": steps,
        "jump": jump,
        "laplace": widths(BADAM, LAPLACE),
        "others": widths(BBB, VADAM, BADAM),
        "started": "; ".join(f"{noise:g}: {e:.3f}, {sd:.2f}" for noise, e, sd in started),
        "away": listed("{0} {1:.2f}", ((name, _away(curve)) for name, curve in of.items())),
    }
    alike = {
        "gradually": all(a < b for a, b in pairwise(steps)) and jump < 0.1 * (steps[-1] - steps[0]),
        "laplace": all(0.5 < at(of[BADAM]) / at(of[LAPLACE]) < 2 for at in (_inside, _away)),
        "others": max(_away(of[BBB]), _away(of[VADAM])) < _away(of[BADAM]),
        "sensitive": max(errors) > 1.5 * min(errors) or max(away) > 1.5 * min(away),
    }
    return fill(__file__, numbers, {key: of_one_run(holds) for key, holds in alike.items()})


def _figure(curves: Sequence[Curve]) -> Figure:
    data, target = find(curves, "data", "training points"), find(curves, "data", "without noise")
    with sheet(
        "Predictive bands of a toy regression",
        [f"{POINTS} points between {SEEN[0]:g} and {SEEN[1]:g}", "mean and two sd of y"],
        list(_COLOURS),
        per_line=3,
        width=1.95,
        height=1.6,
        key=[key_line("without noise", QUIET_INK, linestyle=DASHED)],
    ) as (figure, panels):
        for axes, (name, colour) in zip(panels, _COLOURS.items(), strict=True):
            line(axes, find(curves, "prediction", name), colour)
            axes.plot(target.x, target.y, color=QUIET_INK, linewidth=0.9, linestyle=DASHED)
            axes.plot(data.x, data.y, ".", color=INK, markersize=1.5)
            axes.set_xlim(*SHOWN)
            axes.set_ylim(-3.5, 4)
            axes.set_xlabel("x")
            axes.set_ylabel("y")
    return figure
