"""A training epoch of other layers, strategies and loaders, over ours.

All train the same network on the same images in batches of the same size with AMSGrad. `naive` and
Avalanche's Naive have point estimates, `gaussian-vcl` and all after it a Gaussian posterior. On
Avalanche a DataLoader decodes and transforms image by image; all others cut batches from a tensor.

The layers of other packages run in our loop on in-memory tensors, with a fused optimiser if they
leave that to the loop: the best case for them. TyXe trains by its own `fit`. A package that is not
installed is left out (`pip install 'vcl-radial[bench]'`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import torch
from avalanche.training import Naive
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.plain_avalanche import PlainBayesianLinear, PlainVCL, second_task
from benchmarks.speed.setting import Row, Setting, compare
from benchmarks.speed.timing import Work, timed
from benchmarks.speed.training import EPOCH, InMemoryLoop, Training, perceptron

POINT, BAYESIAN = OURS = ("naive", "gaussian-vcl")
RATIO = f"ratio to {POINT}"
PICTURES = (Ratios("peers", f"One training epoch, {RATIO}", RATIO),)


def measure(setting: Setting) -> list[Row]:
    """Seconds per epoch of each, and its ratio to ours with point estimates."""
    keys = {"epochs": 3, **setting.sizes.recipe}
    point, ours = (Training(method, keys, setting) for method in OURS)
    layer = partial(PlainBayesianLinear, rho=ours.recipe.initial_rho)
    work: dict[str, Work] = {
        POINT: point.train,
        "Avalanche's Naive": second_task(Naive, nn.Linear, ours, setting),
        BAYESIAN: ours.train,
        "VCL by layer on Avalanche": second_task(PlainVCL, layer, ours, setting),
    }
    for package, train_by in PACKAGES.items():
        try:
            work[package] = train_by(ours)
        except ImportError:
            print(f"  {package}: not installed: pip install 'vcl-radial[bench]'")
    units = {n: timed(w, setting.clock, EPOCH, ours.recipe.epochs) for n, w in work.items()}
    return compare(units, setting, EPOCH, reference=POINT)


def bayesian_torch(ours: Training) -> Work:
    """Layers of bayesian-torch (Intel Labs), which give their KL with their output."""
    make: Any = import_module("bayesian_torch.layers").LinearReparameterization
    rho = ours.recipe.initial_rho
    layers = nn.ModuleList(make(*sizes, posterior_rho_init=rho) for sizes in ours.layers)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        kls = []
        for number, layer in enumerate(layers):
            x, kl = layer(x.relu_() if number else x)
            kls.append(kl)
        return cross_entropy(x, y) + torch.stack(kls).sum() / len(loop.y)

    loop = InMemoryLoop(layers, ours, loss)
    return loop.train


def torch_uncertainty(ours: Training) -> Work:
    """Layers and objective of torch-uncertainty (ENSTA), whose KL is averaged over the layers."""
    make: Any = import_module("torch_uncertainty.layers").BayesLinear
    objective: Any = import_module("torch_uncertainty.losses").ELBOLoss
    rho = ours.recipe.initial_rho
    layers = [make(*sizes, prior_sigma_1=1.0, sigma_init=rho) for sizes in ours.layers]
    loop = InMemoryLoop(perceptron(layers), ours)
    loop.loss = objective(
        loop.network, nn.CrossEntropyLoss(), kl_weight=1 / len(loop.y), num_samples=1
    )
    return loop.train


class _Batches:
    """The batches of a loop, in a new order at each iteration."""

    def __init__(self, loop: InMemoryLoop) -> None:
        self._loop = loop

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self._loop.batches()


def tyxe(ours: Training) -> Work:
    """A network of PyTorch's layers made Bayesian by TyXe (Ritter and Karaletsos), on Pyro."""
    tyxe: Any = import_module("tyxe")
    pyro: Any = import_module("pyro")
    loop = InMemoryLoop(perceptron([nn.Linear(*sizes) for sizes in ours.layers]), ours)
    scale = float(nn.functional.softplus(torch.tensor(ours.recipe.initial_rho)))
    network = tyxe.VariationalBNN(
        loop.network,
        tyxe.priors.IIDPrior(pyro.distributions.Normal(0.0, 1.0)),
        tyxe.likelihoods.Categorical(dataset_size=len(loop.y)),
        partial(tyxe.guides.AutoNormal, init_scale=scale),
    )
    optimizer = pyro.optim.Adam({"lr": ours.recipe.learning_rate, "amsgrad": True})
    return lambda: network.fit(_Batches(loop), optimizer, loop.epochs)


PACKAGES: dict[str, Callable[[Training], Work]] = {
    "bayesian-torch": bayesian_torch,
    "torch-uncertainty": torch_uncertainty,
    "TyXe": tyxe,
}
"""Layers of other packages in our loop; raise `ImportError` if a package is missing."""
