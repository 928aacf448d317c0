"""The toy regression after the paper's number of steps, over seeds, L2 and beta_2 (BAdam Fig. 1).

20,000 epochs of 200 points in batches of 128 are 40,000 steps. The prior N(0, s^2) stands for L2:
per point it adds w^2 / (2 N s^2) to E tau / 2 (y - f)^2, an L2 penalty of 1 / (N s^2 E tau) beside
the squared error; s = 1,000 is none in effect. beta_2 is the decay of Adam's second moment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reports.figures import curve_of_means
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from reports.seeds.badam import toy_regression as toy
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.metrics.verdicts import verdicts_of_family
from vcl_radial.tracks.regression.learner import Job
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.task_by_task import TaskByTask

STEPS, QUICK_STEPS = 40_000, 300
SEEDS, QUICK_SEEDS = 8, 2
"""Eight seeds: the fewest with which five tests together can be below 0.05 (Holm)."""
STRONG, NONE = 0.1, 1000.0
"""Prior scales s: 100 times the L2 of N(0, 1), and none in effect."""
USUAL, SLOW = 0.999, 0.99999
"""Values of beta_2; runs with this option train without lanes."""
PLACES = (0.25, 0.6, 0.8, 1.0, 1.2)

_METHODS, _L2, _BETA2 = "sd of the methods", "sd over L2", "sd over beta_2"
_OWN = "L2 of N(0, 1)"


def runs() -> dict[tuple[str, str], tuple[toy.Predict, Mapping[str, object]]]:
    """The prediction of each curve by panel and name, and the keys of its recipe."""
    methods = toy.methods()
    badam, keys = methods[toy.BADAM]
    shown: dict[tuple[str, str], tuple[toy.Predict, Mapping[str, object]]] = {
        (_METHODS, name): methods[name] for name in (toy.BADAM, toy.LAPLACE, toy.BBB, toy.VADAM)
    }
    shown[_L2, "100 times the L2"] = badam, {**keys, "prior_scale": STRONG}
    shown[_L2, "no L2"] = badam, {**keys, "prior_scale": NONE}
    for beta2 in (USUAL, SLOW):
        shown[_BETA2, _name(beta2)] = by_itself, {"posterior": "none", "options": {"beta2": beta2}}
    return shown


def _name(beta2: float) -> str:
    return f"β₂ = {beta2}"


def by_itself(job: Job) -> Mixture:
    """The predictive of a method that trains without lanes, with its options."""
    return TaskByTask(job, job.slices[0]).learn()


def nll(prediction: toy.Prediction, x: Tensor, seed: int) -> float:
    """Mean NLL in nats of new targets at x, under a normal with the prediction's mean and sd."""
    noise = torch.randn(len(x), generator=torch.Generator().manual_seed(seed + 1000)).double()
    z = (toy.truth(x, 0.02 * noise) - prediction.mean) / prediction.sd
    return float((z.square() / 2 + prediction.sd.log() + math.log(2 * math.pi) / 2).mean())


def analyse(setting: Setting) -> Analysis:
    """Train all methods with every seed."""
    steps, count = (QUICK_STEPS, QUICK_SEEDS) if setting.quick else (STEPS, SEEDS)
    hidden = toy.QUICK_HIDDEN if setting.quick else toy.HIDDEN
    points = torch.linspace(*toy.SHOWN, 171, dtype=torch.float64)
    recipe = Recipe(
        strategy="badam", posterior="gaussian", batch_size=128, steps=steps, noise_rate=1e-3
    )
    seeds = range(setting.seed, setting.seed + count)
    shown = runs()
    sd: dict[tuple[str, str], list[Tensor]] = {at: [] for at in shown}
    scores: dict[tuple[str, str], list[float]] = {at: [] for at in shown}
    for seed in seeds:
        data = toy.make_data(seed)
        for at, (predict, settings) in shown.items():
            changed = recipe.model_copy(update=settings)
            made = toy.predict_with(predict, changed, hidden, *data, points, seed=seed)
            sd[at].append(made.sd)
            scores[at].append(nll(made, points, seed))
        setting.say(f"seed {seed} is done")
    curves = [
        curve_of_means(panel, name, points.tolist(), torch.stack(values).T.tolist())
        for (panel, name), values in sd.items()
    ]
    usual = torch.stack(sd[_METHODS, toy.BADAM]).T.tolist()
    curves.append(curve_of_means(_L2, _OWN, points.tolist(), usual))
    widths = {
        at: np.stack([_widths(points, value) for value in values]) for at, values in sd.items()
    }
    numbers, rules = _findings(widths, scores)
    sizes = {"seeds": count, "steps_made": steps, "hidden": hidden, "first": setting.seed}
    return analysis(__file__, curves, numbers | sizes, rules)


def _widths(points: Tensor, sd: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The sd at `PLACES`, the largest step between neighbours there, and the sd away."""
    at = [int((points - place).abs().argmin()) for place in (*PLACES, *toy.AWAY)]
    right = sd[points >= PLACES[0]]
    values = sd[at].tolist()
    away = sum(values[len(PLACES) :]) / len(toy.AWAY)
    return np.array([*values[: len(PLACES)], float(right.diff().abs().max()), away])


def _findings(
    widths: Mapping[tuple[str, str], Any], scores: Mapping[tuple[str, str], list[float]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The numbers of the texts, and the verdicts of the claims, by exact sign-flip tests."""
    badam, laplace, bbb, vadam = (
        widths[_METHODS, name] for name in (toy.BADAM, toy.LAPLACE, toy.BBB, toy.VADAM)
    )
    own = np.array(scores[_METHODS, toy.BADAM])
    none, strong, usual, slow = (
        np.array(scores[at])
        for at in (
            (_L2, "no L2"),
            (_L2, "100 times the L2"),
            (_BETA2, _name(USUAL)),
            (_BETA2, _name(SLOW)),
        )
    )
    increments = np.stack([badam[:, j] - badam[:, i] for i, j in pairwise(range(len(PLACES)))])
    span = badam[:, len(PLACES) - 1] - badam[:, 0]
    ratios = np.abs(np.log(badam / laplace))[:, [0, -1]].max(1)
    wider = np.log(badam[:, -1]) - np.log(np.maximum(bbb[:, -1], vadam[:, -1]))
    differences = {
        "gradually": np.minimum(increments.min(0), 0.1 * span - badam[:, -2]),
        "laplace": np.log(2) - ratios,
        "others": wider,
        "l2": own - none,
        "beta2": usual - slow,
    }
    verdicts = verdicts_of_family([values.tolist() for values in differences.values()])
    above = {key: int((values > 0).sum()) for key, values in differences.items()}
    numbers = {
        "places": badam[:, : len(PLACES)].mean(0).tolist(),
        "jump": badam[:, -2].mean(),
        "amid": [values[:, 0].mean() for values in (badam, laplace)],
        "away": [values[:, -1].mean() for values in (badam, laplace, bbb, vadam)],
        "nll": [values.mean() for values in (own, none, strong, usual, slow)],
        **{f"{key}_above": count for key, count in above.items()},
    }
    return numbers, dict(zip(differences, verdicts, strict=True))
