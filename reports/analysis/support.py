"""Full and discrete support: what a second data set can teach (blog's picture of updating).

One weight w with the prior N(0, 1) is seen in data y_i ~ N(w, 1). After n of them with the mean m

    full        N(n m / (n + 1), 1 / (n + 1)), which is the prior of the next data
    discrete    K draws of that posterior, of equal mass: as an ensemble, or samples of a chain

and Bayes' rule reweights the K points by exp(-n (w_k - m)^2 / 2) for the next n data.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from reports.figures import curve
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from vcl_radial.reporting.figures.drawing import Curve

Array = npt.NDArray[np.float64]

FIRST = 10
"""Observations of the first data set."""
POINTS = 5, 100
COUNTS = 10 ** np.arange(0, 6.1, 0.5)
"""Observations of the second data set."""
SEEN = 1_000
TRUTH = 0.5
"""The weight in the picture of one case; the error's weights are draws of the prior."""
CASES, QUICK_CASES = 4_000, 500

_ONE = "after the first data"
_TWO = "after the second data"
_ERROR = "error over the second data"
_FULL = "full support"


def update(mean: Array, precision: float, data: Array, n: float) -> tuple[Array, float]:
    """Mean and precision of a Gaussian posterior after n more observations with these means."""
    return (precision * mean + n * data) / (precision + n), precision + n


def reweighted(points: Array, data: Array, n: float) -> Array:
    """Masses `[cases, K]` of points of equal mass after n observations with means `[cases]`."""
    return np.asarray(special.softmax(-n / 2 * (points - data[:, None]) ** 2, axis=1))


def analyse(setting: Setting) -> Analysis:
    """Draw one case, and the error of the posterior mean over the second data."""
    random = np.random.default_rng(setting.seed)
    cases = QUICK_CASES if setting.quick else CASES
    truth = random.standard_normal(cases)
    first, precision = update(np.zeros(cases), 1.0, _means(random, truth, FIRST), FIRST)
    noise = random.standard_normal((cases, max(POINTS)))
    points = first[:, None] + noise / np.sqrt(precision)
    errors: dict[str, list[float]] = {}
    for n in COUNTS:
        data = _means(random, truth, n)
        full, _ = update(first, precision, data, n)
        means = {_FULL: full}
        for K in POINTS:
            masses = reweighted(points[:, :K], data, n)
            means[f"{K} points"] = (masses * points[:, :K]).sum(1)
        for name, mean in means.items():
            errors.setdefault(name, []).append(float(np.sqrt(((mean - truth) ** 2).mean())))
    nearest = float(np.sqrt((np.abs(points[:, : POINTS[0]] - truth[:, None]).min(1) ** 2).mean()))
    curves = [
        *_one_case(random),
        *(curve(_ERROR, name, COUNTS, values) for name, values in errors.items()),
    ]
    few = errors[f"{POINTS[0]} points"]
    apart = _sequential_minus_joint(random)
    numbers = {
        "cases": cases,
        "first": FIRST,
        "seen": SEEN,
        "most": COUNTS[-1],
        "few": POINTS[0],
        "many": POINTS[1],
        "errors": [values[-1] for values in errors.values()],
        "nearest": nearest,
        "apart": apart,
    }
    rules = {
        "zero": few[-1] > 0.95 * nearest and errors[_FULL][-1] < 0.1 * few[-1],
        "update": apart < 1e-12,
    }
    return analysis(__file__, curves, numbers, rules)


def _means(random: np.random.Generator, truth: Array, n: float) -> Array:
    """The mean of n observations of each weight."""
    means: Array = truth + random.standard_normal(len(truth)) / np.sqrt(n)
    return means


def _one_case(random: np.random.Generator) -> list[Curve]:
    """Densities, and masses as stems, after the first and after the second data."""
    truth = np.array([TRUTH])
    first, precision = update(np.zeros(1), 1.0, _means(random, truth, FIRST), FIRST)
    points = first[:, None] + random.standard_normal((1, POINTS[0])) / np.sqrt(precision)
    data = _means(random, truth, SEEN)
    second, later = update(first, precision, data, SEEN)
    w, near = np.linspace(-2.5, 2.5, 501), np.linspace(TRUTH - 1, TRUTH + 1, 1001)
    return [
        curve(_ONE, "prior", w, stats.norm.pdf(w)),
        curve(_ONE, _FULL, w, stats.norm(first[0], precision**-0.5).pdf(w)),
        _stems(_ONE, points[0], np.full(POINTS[0], 1 / POINTS[0])),
        curve(_TWO, _FULL, near, stats.norm(second[0], later**-0.5).pdf(near)),
        _stems(_TWO, points[0], reweighted(points, data, SEEN)[0]),
    ]


def _stems(panel: str, points: Array, masses: Array) -> Curve:
    """Upright lines at points, as high as their masses, with lines along 0 between them."""
    order = np.argsort(points)
    x = np.repeat(points[order], 3)
    y = np.outer(masses[order], [0.0, 1.0, 0.0]).ravel()
    return curve(panel, "discrete support", x, y)


def _sequential_minus_joint(random: np.random.Generator) -> float:
    """The largest difference of the full posteriors of data in two parts, and all at once."""
    first, second = random.standard_normal((2, 100))
    mean, precision = update(*update(np.zeros(100), 1.0, first, FIRST), second, SEEN)
    n = FIRST + SEEN
    joint, other = update(np.zeros(100), 1.0, (FIRST * first + SEEN * second) / n, n)
    return float(np.abs(mean - joint).max() + abs(precision - other))
