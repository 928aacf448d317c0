"""The methods whose cost is compared, on two networks: training and prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from reports.analysis.fitting import Recipe, fit
from vcl_radial.nn import PointConv2d, PointLinear, PosteriorSettings, posterior_blocks
from vcl_radial.nn.convert import to_bayesian

K = 5
"""Draws of a prediction, members of an ensemble, stored samples of a chain."""
BATCH = 128
DROPOUT = 0.5

RADIAL, MFVI = "radial", "MFVI"
MC_DROPOUT, ENSEMBLE, SGLD = "MC dropout", "deep ensemble", "SG-MCMC (SGLD)"
METHODS = (RADIAL, MFVI, MC_DROPOUT, ENSEMBLE, SGLD)
_FAMILIES = {RADIAL: "radial", MFVI: "gaussian"}

Batches = Sequence[tuple[Tensor, Tensor]]
"""Images `[B, 1, 28, 28]` and labels `[B]`."""


def perceptron(posterior: PosteriorSettings | None, drop: float = 0.0) -> nn.Module:
    """784-400-400-10, Bayesian if there is a posterior, with dropout if `drop` is above 0."""
    between = [nn.ReLU(), *([nn.Dropout(drop)] if drop else [])]
    layers = PointLinear(784, 400), *between, PointLinear(400, 400), *between, PointLinear(400, 10)
    return to_bayesian(nn.Sequential(nn.Flatten(), *layers), posterior, inplace=True)


def convolutions(posterior: PosteriorSettings | None, drop: float = 0.0) -> nn.Module:
    """Three 3x3 convolutions of 32, 64 and 64 channels with pooling, and an output layer."""
    between = [nn.ReLU(), *([nn.Dropout(drop)] if drop else []), nn.MaxPool2d(2)]
    layers = [
        module
        for sizes in pairwise((1, 32, 64, 64))
        for module in (PointConv2d(*sizes, 3, padding=1), *between)
    ]
    network = nn.Sequential(*layers, nn.Flatten(), PointLinear(576, 10))
    return to_bayesian(network, posterior, inplace=True)


Architecture = Callable[[PosteriorSettings | None, float], nn.Module]
ARCHITECTURES: dict[str, Architecture] = {"MLP": perceptron, "convolutions": convolutions}


@dataclass
class Member:
    """A method's networks, their training for an epoch, and a draw from them."""

    networks: Sequence[nn.Module]
    train: Callable[[], object]
    weights: int

    @property
    def stored(self) -> float:
        """Numbers that a prediction needs, per weight of one network."""
        return sum(p.numel() for n in self.networks for p in n.parameters()) / self.weights


def make(method: str, architecture: Architecture, x: Tensor, y: Tensor) -> Member:
    """A method on a network, ready to train on batches of these images."""
    weights = sum(p.numel() for p in architecture(None, 0.0).parameters())
    batches = list(zip(torch.split(x, BATCH), torch.split(y, BATCH), strict=True))
    if method in _FAMILIES:
        network = architecture(PosteriorSettings(_FAMILIES[method]), 0.0)
        recipe = Recipe(1, BATCH, learning_rate=1e-3, rho_learning_rate=1e-3, samples=1)
        return Member([network], lambda: list(fit(network, x, y, recipe)), weights)
    if method == MC_DROPOUT:
        network = architecture(None, DROPOUT)
        return Member([network], lambda: _epoch([network], batches), weights)
    members = [architecture(None, 0.0) for _ in range(K)]
    if method == ENSEMBLE:
        return Member(members, lambda: _epoch(members, batches), weights)
    # A chain moves one network; the other networks stand for stored states of the chain.
    return Member(members, lambda: _langevin_epoch(members[0], batches, len(x)), weights)


def _epoch(networks: Sequence[nn.Module], batches: Batches) -> None:
    for network in networks:
        optimizer = torch.optim.Adam(network.parameters(), fused=True)
        for x, y in batches:
            optimizer.zero_grad()
            cross_entropy(network(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def _langevin_epoch(network: nn.Module, batches: Batches, points: int, step: float = 1e-6) -> None:
    """Stochastic gradient Langevin dynamics (Welling and Teh 2011, Eq. 4), unit prior.

    w <- w - step/2 (N grad NLL + w) + N(0, step)
    """
    parameters = list(network.parameters())
    for x, y in batches:
        gradients = torch.autograd.grad(cross_entropy(network(x), y), parameters)
        with torch.no_grad():
            for w, g in zip(parameters, gradients, strict=True):
                w.mul_(1 - step / 2).sub_(g, alpha=points * step / 2)
                w.add_(torch.randn_like(w), alpha=step**0.5)


@torch.no_grad()
def predict(member: Member, x: Tensor) -> Tensor:
    """Log of the mean probability over K draws: of weights, masks or members; `[B, C]`."""
    networks = list(member.networks) * (K // len(member.networks))
    return torch.stack([n(x).softmax(-1) for n in networks]).mean(0).log()


@torch.no_grad()
def values_of_a_weight(method: str, member: Member, draws: int) -> int:
    """The number of different values that one weight takes in `draws` draws."""
    first = next(p for n in member.networks for p in n.parameters()).flatten()[:1]
    if method in _FAMILIES:
        block = posterior_blocks(member.networks[0], [0])[0]
        # In float32 there are few numbers near the mean, however many values the weight has.
        first_group = block.family(block.mean[:1].double(), block.scale()[:1].double())
        values = torch.stack([first_group.sample(1).flatten()[0] for _ in range(draws)])
    elif method == MC_DROPOUT:  # a unit that is dropped takes its weights with it
        values = dropout(first.expand(draws), DROPOUT)
    else:
        kept = torch.stack([next(iter(n.parameters())).flatten()[0] for n in member.networks])
        values = kept[torch.randint(len(kept), (draws,))]
    return len(set(values.tolist()))
