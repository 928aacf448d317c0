"""One network trained with a Gaussian and with a radial posterior, watched at every stage.

The runs behind Fig. 7 of the AISTATS paper and Fig. 8 of the arXiv version, which also show one
run. The runs are made once for both figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from reports.analysis.fitting import Recipe, fit
from reports.analysis.gradient_noise import gradient_variance, nll_gradient
from reports.analysis.images import Images, load_eyes
from reports.papers.analysis import Setting
from reports.papers.texts import Undecided, of_one_run
from vcl_radial.likelihoods.objectives import categorical_nll
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.metrics.verdicts import Verdict
from vcl_radial.nn import PosteriorSettings, posterior_blocks
from vcl_radial.nn.vgg import VGG
from vcl_radial.reporting.figures.drawing import Curve

MFVI, RADIAL, FAST_RADIAL = "MFVI", "radial", "radial, ρ learning 100 × as fast"
NAMES = (MFVI, RADIAL, FAST_RADIAL)

CHANNELS, QUICK_CHANNELS = 10, 2
"""Channels of the VGG: 5/8 of the small network's 16, as the paper has 5/8 of VGG-16's 64."""
SIZE, QUICK_SIZE = 64, 32
PATIENTS, QUICK_PATIENTS = 1000, 40
"""Number of patients in drawn pictures, if no data folder is named."""
INITIAL_RHO = -6.0
FULL = Recipe(epochs=96, batch_size=64, learning_rate=2e-3, rho_learning_rate=2e-3, samples=4)
QUICK = Recipe(epochs=24, batch_size=16, learning_rate=2e-2, rho_learning_rate=2e-2, samples=1)
_STAGES, _QUICK_STAGES = 24, 12
_DRAWS, _DISTANCES = 8, 128
_PAIRS = 6


class Stage(NamedTuple):
    """Measurements of a network after some epochs."""

    epoch: int
    accuracy: float
    """of one draw of the weights on the training images, averaged over draws, in per cent"""
    nll: float
    """on the training images, in nats per image"""
    kl: float
    """KL(q || p), in nats per image"""
    cross_entropy: float
    """-E_q log p, the part of the KL that the prior has, in nats per image"""
    gradient_sd: float
    """of a batch's NLL gradient in one mean, under one draw of the weights"""
    sigma: float
    """mean over all weights"""
    sigma_low: float
    sigma_high: float
    distance: float
    """||w - mean|| over all weights, averaged over draws"""


@dataclass(frozen=True, eq=False)
class Histories:
    """The stages of every run, and a description of the training."""

    stages: dict[str, list[Stage]]
    images: Images
    recipe: Recipe
    channels: int
    weights: int
    radii: int
    """of the radial network, one for a layer"""

    def rules(self, alike: Mapping[str, bool]) -> dict[str, Undecided]:
        """The rules of claims, which drawn pictures and a single run cannot decide."""
        if self.images.real:
            return {key: of_one_run(holds) for key, holds in alike.items()}
        reason = "drawn pictures here, photographs there"
        return {
            key: Undecided(Verdict.NOT_COMPARABLE, reason, holds) for key, holds in alike.items()
        }

    def curve(self, panel: str, name: str, field: str, **ends: str) -> Curve:
        """One quantity over the epochs, optionally with a band between two other quantities."""
        fields = {"x": "epoch", "y": field} | ends
        stages = self.stages[name]
        values = {part: [float(getattr(s, of)) for s in stages] for part, of in fields.items()}
        return Curve(panel, name, **values)


@lru_cache(maxsize=1)
def train_both(setting: Setting) -> Histories:
    """Train with both posteriors, and with a radial posterior whose rho has a larger step size.

    Raises:
        UserError: the named data folder does not exist.
        DataError: the folder lacks the photographs.
        Diverged: a loss is no longer a finite number.
    """
    quick = setting.quick
    recipe, channels = (QUICK, QUICK_CHANNELS) if quick else (FULL, CHANNELS)
    images = load_eyes(setting, *((QUICK_SIZE, QUICK_PATIENTS) if quick else (SIZE, PATIENTS)))
    recipes = {
        MFVI: ("gaussian", recipe),
        RADIAL: ("radial", recipe),
        FAST_RADIAL: ("radial", replace(recipe, rho_learning_rate=100 * recipe.rho_learning_rate)),
    }
    stages: dict[str, list[Stage]] = {}
    weights = radii = 0
    for name, (family, fit_recipe) in recipes.items():
        # All networks have the same initial weights and the same order of images.
        with seeded_rng(setting.seed, torch.device("cpu")):
            network = VGG(
                channels,
                images.classes,
                posterior=PosteriorSettings(family, initial_rho=INITIAL_RHO),
                first_stride=2,
            )
            blocks = posterior_blocks(network, [0])
            weights, radii = sum(block.mean.numel() for block in blocks), len(blocks)
            stages[name] = _watch(network, name, images, fit_recipe, setting)
    return Histories(stages, images, recipe, channels, weights, radii)


def _watch(
    network: nn.Module, name: str, images: Images, recipe: Recipe, setting: Setting
) -> list[Stage]:
    every = recipe.epochs // (_QUICK_STAGES if setting.quick else _STAGES)
    seed = setting.seed + 1
    stages = [measure(network, images, recipe.batch_size, 0, seed)]
    for epoch in fit(network, images.train_x, images.train_y, recipe):
        if epoch % every == 0:
            stage = measure(network, images, recipe.batch_size, epoch, seed)
            stages.append(stage)
            setting.say(
                f"{name}: epoch {epoch} of {recipe.epochs}, accuracy {stage.accuracy:.1f} %, "
                f"NLL {stage.nll:.3g}, KL {stage.kl:.1f} nats per image"
            )
    return stages


def measure(network: nn.Module, images: Images, batch_size: int, epoch: int, seed: int) -> Stage:
    """Measure the stage of a network, with isolated randomness.

    Args:
        network: a Bayesian network.
        images: the images; only training images are used.
        batch_size: size of the batch of first images whose gradient is taken.
        epoch: number of trained epochs.
        seed: seed of the draws.
    """
    x, y, blocks = images.train_x, images.train_y, posterior_blocks(network, [0])
    with seeded_rng(seed, x.device):
        gradient = nll_gradient(network, x[:batch_size], y[:batch_size])
        variance, _ = gradient_variance(gradient, _PAIRS)
        with torch.no_grad():
            logits = torch.stack([network(x) for _ in range(_DRAWS)])
            kl = sum(float(block.kl()) for block in blocks)
            entropy = sum(float(block.posterior.entropy().sum()) for block in blocks)
            sigma = torch.cat([block.scale().flatten() for block in blocks]).double()
            squares = sum(
                (block.posterior.sample(_DISTANCES) - block.mean).square().flatten(1).sum(1)
                for block in blocks
            )
    assert isinstance(squares, Tensor)
    return Stage(
        epoch,
        accuracy=100 * float((logits.argmax(-1) == y).float().mean()),
        nll=float(categorical_nll(logits, y)),
        kl=kl / len(x),
        cross_entropy=(kl + entropy) / len(x),
        gradient_sd=(variance / len(sigma)) ** 0.5,
        sigma=float(sigma.mean()),
        sigma_low=float(sigma.min()),
        sigma_high=float(sigma.max()),
        distance=float(squares.sqrt().mean()),
    )
