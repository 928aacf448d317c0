"""Mean-field VI trained on truncated Gaussian noise (AISTATS Fig. 11).

The noise of each weight is drawn from N(0, 1) given |noise| <= t; the KL is still the KL of the
untruncated Gaussian. The estimate of the NLL is biased, and less noisy: the noise has the variance

    1 - 2 t phi(t) / (2 Phi(t) - 1)

(AISTATS paper, Appendix F).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from reports.analysis.fitting import Recipe, fit
from reports.analysis.images import Images, load_images
from reports.figures import curve_of_means
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from reports.papers.texts import listed
from vcl_radial.likelihoods.predict import log_predictive, seeded_rng
from vcl_radial.metrics.verdicts import verdict_of_parts, verdicts_of_family
from vcl_radial.nn import MLP, PosteriorSettings, posterior_blocks
from vcl_radial.posteriors import Gaussian
from vcl_radial.reporting.figures.drawing import Curve, find

THRESHOLDS = (0.1, 0.3, 0.6, 1.0, 1.5, 2.5)
QUICK_THRESHOLDS = (0.1, 1.0)
SAMPLES = (1, 2, 6)
QUICK_SAMPLES = (1, 4)
SEEDS, QUICK_SEEDS = 10, 2
SIGMA = 0.12
"""Initial sigma: slightly too high, as in the paper."""
HIDDEN = (100, 100)
RECIPE = Recipe(epochs=8, batch_size=100, learning_rate=3e-3, rho_learning_rate=3e-3, samples=1)
_PREDICTIVE = 16

_AS_TRAINED, _POSTERIOR = "predicting with the truncated noise", "predicting with the posterior"


class TruncatedGaussian(Gaussian):
    """A Gaussian whose draws have |noise| <= threshold; density and KL are not truncated."""

    threshold: float = math.inf

    def noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times from N(0, 1) given |noise| <= threshold, shape [n, ..., D].

        Draws use the inverse of the distribution function, which is equivalent to rejection
        sampling.
        """
        if math.isinf(self.threshold):
            return super().noise(n, generator)
        mass = math.erf(self.threshold / math.sqrt(2))
        uniform = torch.rand(
            (n, *self.mean.shape),
            generator=generator,
            dtype=self.mean.dtype,
            device=self.mean.device,
        )
        return uniform.mul_(2).sub_(1).mul_(mass).erfinv_().mul_(math.sqrt(2))


def truncated(threshold: float) -> type[TruncatedGaussian]:
    """The family with noise up to this threshold."""
    return type("TruncatedGaussian", (TruncatedGaussian,), {"threshold": threshold})


def truncated_variance(threshold: float) -> float:
    """Variance of N(0, 1) given that it lies within the threshold."""
    mass = math.erf(threshold / math.sqrt(2))
    density = math.exp(-(threshold**2) / 2) / math.sqrt(2 * math.pi)
    return 1 - 2 * threshold * density / mass


class Score(NamedTuple):
    """Scores on the test images, with draws of one kind."""

    accuracy: float
    """of the predictive distribution, in per cent"""
    nll: float
    """in nats per image"""


def analyse(setting: Setting) -> Analysis:
    """Train over thresholds, draws in a step and seeds."""
    images = load_images(setting)
    thresholds = (*(QUICK_THRESHOLDS if setting.quick else THRESHOLDS), math.inf)
    samples = QUICK_SAMPLES if setting.quick else SAMPLES
    seeds = QUICK_SEEDS if setting.quick else SEEDS
    curves: list[Curve] = []
    gains: dict[str, list[list[float]]] = {_AS_TRAINED: [], _POSTERIOR: []}
    for n in samples:
        scores = [
            [train_and_score(images, t, n, setting.seed + k) for k in range(seeds)]
            for t in thresholds
        ]
        for index, panel in enumerate(gains):
            for field in Score._fields:
                values = [[getattr(run[index], field) for run in runs] for runs in scores]
                curves.append(curve_of_means(f"{panel}: {field}", _name(n), thresholds, values))
            accuracies = [[runs[k][index].accuracy for runs in scores] for k in range(seeds)]
            curves += [
                Curve(f"{panel}: accuracy, seed {k}", _name(n), list(thresholds), values)
                for k, values in enumerate(accuracies)
            ]
            # The strongest truncation is the first, no truncation the last.
            gains[panel].append([values[0] - values[-1] for values in accuracies])
        setting.say(f"{_name(n)}: done")

    trained, whole, nll = (
        [find(curves, panel, _name(n)) for n in samples]
        for panel in (f"{_AS_TRAINED}: accuracy", f"{_POSTERIOR}: accuracy", f"{_POSTERIOR}: nll")
    )
    rises, falls = ([curve.y[0] - curve.y[-1] for curve in panel] for panel in (trained, whole))
    (gain, best), (last_gain, last_best) = _gain(whole[0]), _gain(whole[-1])
    few_and_many = zip(gains[_AS_TRAINED][0], gains[_AS_TRAINED][-1], strict=True)
    fewer = [few - many for few, many in few_and_many]
    verdicts = verdicts_of_family([*gains[_AS_TRAINED], *gains[_POSTERIOR], fewer])
    lowest = [min(zip(curve.y, thresholds, strict=True)) for curve in nll]
    numbers = {
        "images": images.description,
        "hidden": str(HIDDEN),
        "sigma": SIGMA,
        "recipe": RECIPE,
        "seeds": seeds,
        "predictive": _PREDICTIVE,
        "strongest": thresholds[0],
        "rises": rises,
        "last_rise": rises[-1],
        "falls": falls,
        "draws": [_name(n) for n in samples],
        "most": samples[-1],
        "best": _truncation(best),
        "gain": gain,
        "last_best": _truncation(last_best),
        "last_gain": last_gain,
        "variances": listed(
            "{1:.2g} (t = {0:g})", ((t, truncated_variance(t)) for t in (0.5, 1.0, 2.0))
        ),
        "lowest": ", ".join(
            f"{_truncation(t)} with {_name(n)} ({y:.2f} nats, without truncation {curve.y[-1]:.2f})"
            for n, curve, (y, t) in zip(samples, nll, lowest, strict=True)
        ),
    }
    rules = {
        "trained": verdict_of_parts(verdicts[: len(samples)]),
        "posterior": verdict_of_parts(verdicts[len(samples) : -1]),
        "few": verdicts[-1],
    }
    return analysis(__file__, curves, numbers, rules)


def train_and_score(
    images: Images, threshold: float, samples: int, seed: int
) -> tuple[Score, Score]:
    """Train with truncated noise; score with truncated noise and with the posterior."""
    with seeded_rng(seed, torch.device("cpu")):
        network = MLP(
            images.train_x.shape[1],
            images.classes,
            hidden=HIDDEN,
            multi_head=False,
            posterior=PosteriorSettings("gaussian", initial_noise=SIGMA),
        )
        _use(network, threshold)
        for _ in fit(network, images.train_x, images.train_y, replace(RECIPE, samples=samples)):
            pass
    as_trained = _score(network, images, seed)
    _use(network, math.inf)
    return as_trained, _score(network, images, seed)


def _use(network: nn.Module, threshold: float) -> None:
    for block in posterior_blocks(network, [0]):
        block.family = Gaussian if math.isinf(threshold) else truncated(threshold)


def _score(network: nn.Module, images: Images, seed: int) -> Score:
    predictive = log_predictive(network, images.test_x, _PREDICTIVE, seed)
    right = (predictive.argmax(-1) == images.test_y).float().mean()
    return Score(100 * float(right), float(nll_loss(predictive, images.test_y)))


def _name(samples: int) -> str:
    return f"{samples} draw{'s' if samples > 1 else ''} in a step"


def _truncation(threshold: float) -> str:
    return "none" if math.isinf(threshold) else f"{threshold:g}"


def _gain(curve: Curve) -> tuple[float, float]:
    """The gain of the best truncation over no truncation, and this truncation."""
    gains = {float(t): y - curve.y[-1] for t, y in zip(curve.x, curve.y, strict=True)}
    best = max(gains, key=lambda t: gains[t])
    return gains[best], best
