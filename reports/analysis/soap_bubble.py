"""How far draws are from the mean, over D (AISTATS Figs. 1 and 8, arXiv Figs. 2 and 4).

For D weights with one sigma the distance ||w - mean|| / sigma is chi(D) distributed under a
Gaussian, half-normal under a radial posterior:

    p_gaussian(r) = 2^(1 - D/2) / Gamma(D/2) r^(D-1) exp(-r^2 / 2)        (AISTATS paper, Eq. 6)
    p_radial(r)   = sqrt(2 / pi) exp(-r^2 / 2)                            whatever D is
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from torch import Tensor

from reports.figures import curve, histogram
from reports.papers.analysis import Analysis, Setting
from reports.papers.picture import analysis
from reports.papers.texts import listed
from vcl_radial.posteriors import Gaussian, Posterior, Radial
from vcl_radial.reporting.figures.drawing import Curve, find

CONV_64 = 9 * 64 * 64
"""Weights of a 3x3 convolution with 64 channels: Fig. 1."""
CONV_512 = 9 * 512 * 512
"""The same with 512 channels: the blog."""
FIG_8 = 10
SIZES = (1, 3, 10, 30, 100, 1000, 10_000, CONV_64, CONV_512)

_EQUAL_SIGMA = "equal sigma"
_EQUAL_NOISE = "equal noise per weight"
_PARTS = "parts of Eq. 6"
_GROWTH = "distance to the mean over D"
_PAIRS = "distance between two draws over D"
_GRID = 400
_FEWEST_DRAWS, _MOST_DRAWS, _NUMBERS = 100, 20_000, 6e7


def gaussian_density(r: npt.ArrayLike, D: int) -> npt.NDArray[np.float64]:
    """Density of ||w - mean|| / sigma under a Gaussian over D weights: chi(D), Eq. 6."""
    return np.asarray(stats.chi(D).pdf(r))


def radial_density(r: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Density of ||w - mean|| / sigma under a radial posterior: half-normal, for every D."""
    return np.asarray(stats.halfnorm.pdf(r))


def distances(family: type[Posterior], D: int, draws: int) -> Tensor:
    """||w - mean|| / sigma of draws from the suite's posterior over D weights, `[draws]`."""
    posterior = family(torch.zeros(D), torch.ones(D))
    return in_blocks(lambda n: posterior.sample(n).norm(dim=-1), D, draws)


def distances_between(family: type[Posterior], D: int, pairs: int) -> Tensor:
    """||w - w'|| / sigma of independent draws w and w', `[pairs]`."""
    posterior = family(torch.zeros(D), torch.ones(D))
    return in_blocks(lambda n: (posterior.sample(n) - posterior.sample(n)).norm(dim=-1), D, pairs)


def in_blocks(numbers: Callable[[int], Tensor], D: int, draws: int) -> Tensor:
    """Numbers `[draws]` from draws of D weights, computed in blocks that fit into memory."""
    block = max(1, int(2e6 / D))
    return torch.cat([numbers(min(block, draws - i)) for i in range(0, draws, block)]).double()


def analyse(setting: Setting) -> Analysis:
    """Draw the densities for one layer, the parts of Eq. 6, and the distances that grow with D."""
    numbers = _NUMBERS / 30 if setting.quick else _NUMBERS
    sizes = SIZES[:-1] if setting.quick else SIZES
    curves = [*_densities(400 if setting.quick else 2000), *_parts()]
    within: list[float] = []
    summaries: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for D in sizes:
        draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, int(numbers / D)))
        for name, family in (("Gaussian", Gaussian), ("radial", Radial)):
            r = distances(family, D, draws)
            summaries.setdefault((_GROWTH, name), []).append(_quantiles(r))
            between = distances_between(family, D, draws // 2)
            summaries.setdefault((_PAIRS, name), []).append(_quantiles(between))
            if name == "radial":
                within.append(float((r <= 1).double().mean()))
        setting.say(f"D = {D:,}: {draws:,} draws")
    for (panel, name), values in summaries.items():
        middle, low, high = zip(*values, strict=True)
        curves.append(Curve(panel, name, list(sizes), middle, low, high))
    return analysis(__file__, curves, *_findings(curves, within, numbers))


def _findings(
    curves: Sequence[Curve], within: Sequence[float], drawn: float
) -> tuple[dict[str, object], dict[str, bool]]:
    """The numbers of the texts, and the rules of the claims."""
    gaussian, radial = (find(curves, _GROWTH, name) for name in ("Gaussian", "radial"))
    bands = list(zip(gaussian.low or (), gaussian.high or (), strict=True))
    widths = [high - low for low, high in bands]
    layer, ten = list(gaussian.x).index(CONV_64), list(gaussian.x).index(FIG_8)
    pairs = [find(curves, _PAIRS, name).y[-1] for name in ("Gaussian", "radial")]
    between = find(curves, _PAIRS, "radial")
    large = [y for D, y in zip(between.x, between.y, strict=True) if float(D) >= 100]
    chi = stats.chi(FIG_8)
    far = float(chi.cdf(4.5) - chi.cdf(1.5))
    numbers = {
        "drawn": drawn,
        "fewest": _FEWEST_DRAWS,
        "most": _MOST_DRAWS,
        "sizes": listed("{0:,}", ((D, None) for D in gaussian.x)),
        "layer": CONV_64,
        "root": math.sqrt(CONV_64),
        "spike": max(find(curves, _EQUAL_NOISE, "Gaussian").y),
        "fig_8": FIG_8,
        "low": bands[layer][0],
        "high": bands[layer][1],
        "least": 100 * min(within),
        "greatest": 100 * max(within),
        "nearest": min(radial.y),
        "furthest": max(radial.y),
        "far": 100 * far,
        "mode": math.sqrt(FIG_8 - 1),
        "largest": gaussian.x[-1],
        "median": (gaussian.y[ten], gaussian.y[-1]),
        "width": (widths[ten], widths[-1]),
        "share": (100 * widths[ten] / gaussian.y[ten], 100 * widths[-1] / gaussian.y[-1]),
        "pairs": pairs,
        "large": (min(large), max(large)),
        "half": 100 * float(stats.halfnorm.cdf(0.5)),
        "twice": 100 * (1 - float(stats.halfnorm.cdf(2))),
    }
    rules = {
        "shell": widths[layer] / gaussian.y[layer] < 0.05,
        "near": all(abs(share - 0.683) < 0.15 for share in within),
        "between": far > 0.9,
        "narrower": widths[-1] < 0.9 * widths[ten],
        "pairs": max(large) < 1.5 * min(large),
    }
    return numbers, rules


def _densities(draws: int) -> list[Curve]:
    """Fig. 1, by closed form and by draws, at equal sigma and at equal noise per weight."""
    D, root = CONV_64, math.sqrt(CONV_64)
    near, shell = np.linspace(0, 6, _GRID), np.linspace(root - 4, root + 4, _GRID)
    gaussian = distances(Gaussian, D, draws).numpy()
    radial = distances(Radial, D, draws).numpy()
    wide = np.linspace(0, 3, _GRID)
    fine = np.unique(np.concatenate([wide, np.linspace(0.97, 1.03, _GRID)]))
    return [
        curve(_EQUAL_SIGMA, "Gaussian", shell, gaussian_density(shell, D)),
        curve(_EQUAL_SIGMA, "radial", near, radial_density(near)),
        _histogram(_EQUAL_SIGMA, "Gaussian, draws", gaussian, 0.35),
        _histogram(_EQUAL_SIGMA, "radial, draws", radial, 0.35),
        # In units of sqrt(D) tau, which is the radial posterior's sigma.
        curve(_EQUAL_NOISE, "Gaussian", fine, root * gaussian_density(root * fine, D)),
        curve(_EQUAL_NOISE, "radial", wide, radial_density(wide)),
        _histogram(_EQUAL_NOISE, "radial, draws", radial, 0.15),
    ]


def _histogram(panel: str, name: str, values: npt.NDArray[np.float64], width: float) -> Curve:
    first = width * math.floor(values.min() / width)
    return histogram(panel, name, values, np.arange(first, values.max() + width, width))


def _parts() -> list[Curve]:
    """Fig. 8: volume r^(D-1), the inverse of exp(-r^2/2), and the density, all at D = 10."""
    r = np.linspace(0.02, 6, _GRID)
    return [
        curve(_PARTS, "volume, r⁹", r, r ** (FIG_8 - 1)),
        curve(_PARTS, "1 / exp(−r²/2)", r, np.exp(r**2 / 2)),
        curve(_PARTS, "density of r", r, gaussian_density(r, FIG_8)),
    ]


def _quantiles(values: Tensor) -> tuple[float, float, float]:
    low, middle, high = torch.quantile(values, torch.tensor([0.05, 0.5, 0.95]).double()).tolist()
    return middle, low, high
