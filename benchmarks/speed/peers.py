"""A training epoch of other layers, strategies and loaders, over ours.

All train the same network, with point estimates or a Gaussian posterior, on the same images in
batches of the same size with AMSGrad. The layers of other packages are given our loop on in-memory
tensors, with a fused optimiser where they leave that to the loop: the best case for them.
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
from benchmarks.speed.plain_layers import PlainBayesianLinear, PlainVCL
from benchmarks.speed.setting import Result, Setting, rows_of
from benchmarks.speed.stock_avalanche import LoaderLoop, StockTraining
from benchmarks.speed.timing import Work, interleaved, ratios
from benchmarks.speed.training import InMemoryLoop, Training, perceptron

POINT, BAYESIAN = OURS = ("naive", "gaussian-vcl")
RATIO = f"ratio to {POINT}"
PICTURES = (Ratios("peers", f"One training epoch, {RATIO}", RATIO),)
NOT_INSTALLED = "not installed: pip install 'vcl-radial[bench]'"


def measure(setting: Setting) -> Result:
    """Seconds per epoch of each, and its ratios to ours."""
    sizes, clock, images, device = setting.sizes, setting.clock, setting.images, setting.device
    keys = {"epochs": sizes.peer_epochs, **sizes.recipe}
    trainings = {method: Training(method, keys, images, device, clock) for method in OURS}
    ours = trainings[BAYESIAN]
    stock = partial(StockTraining, ours=ours, images=images, device=device)
    layer = partial(PlainBayesianLinear, rho=ours.recipe.initial_rho)
    variants: dict[str, Work] = {
        POINT: trainings[POINT].train,
        "DataLoader and plain loop": LoaderLoop(ours, images).train,
        "Avalanche's Naive": stock(Naive, nn.Linear).train,
        BAYESIAN: ours.train,
        "VCL by layer on Avalanche": stock(PlainVCL, layer).train,
    }
    notes = [
        f"The first three have point estimates, {BAYESIAN} and all after it a Gaussian posterior. "
        "A plain loop: as in van de Ven's continual-learning code. On Avalanche, and in the plain "
        "loop, a DataLoader decodes and transforms image by image; all others cut batches from a "
        "tensor. TyXe trains by its own `fit`."
    ]
    for package, loop in PACKAGES.items():
        try:
            variants[package] = loop(ours).train
        except ImportError:
            notes.append(f"{package}: {NOT_INSTALLED}")
    seconds = interleaved(variants, setting.repeats, clock)
    epochs = {
        name: [call / ours.recipe.epochs for call in calls] for name, calls in seconds.items()
    }
    rows = rows_of("peers", epochs, "seconds per epoch")
    rows += rows_of("peers", ratios(seconds, POINT), RATIO)
    rows += rows_of("peers", ratios(seconds, BAYESIAN), f"ratio to {BAYESIAN}")
    return Result(rows, notes)


class BayesianTorchLoop(InMemoryLoop):
    """Layers of bayesian-torch (Intel Labs), which give their KL with their output."""

    def __init__(self, ours: Training) -> None:
        layer: Any = import_module("bayesian_torch.layers").LinearReparameterization
        rho = ours.recipe.initial_rho
        layers = [layer(*sizes, posterior_rho_init=rho) for sizes in ours.layers]
        super().__init__(nn.ModuleList(layers), ours)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean NLL of a batch and the KL over N."""
        *hidden, output = self.network.children()
        kls = []
        for layer in hidden:
            x, kl = layer(x)
            x = x.relu_()
            kls.append(kl)
        x, kl = output(x)
        return cross_entropy(x, y) + torch.stack([*kls, kl]).sum() / len(self.y)


class TorchUncertaintyLoop(InMemoryLoop):
    """Layers and objective of torch-uncertainty (ENSTA)."""

    def __init__(self, ours: Training) -> None:
        layer: Any = import_module("torch_uncertainty.layers").BayesLinear
        objective: Any = import_module("torch_uncertainty.losses").ELBOLoss
        rho = ours.recipe.initial_rho
        layers = [layer(*sizes, prior_sigma_1=1.0, sigma_init=rho) for sizes in ours.layers]
        super().__init__(perceptron(layers), ours)
        self._objective = objective(
            self.network, nn.CrossEntropyLoss(), kl_weight=1 / len(self.y), num_samples=1
        )

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Its own evidence lower bound, whose KL is averaged over the layers."""
        elbo: Tensor = self._objective(x, y)
        return elbo


class TyXeLoop(InMemoryLoop):
    """A network of PyTorch's layers made Bayesian by TyXe (Ritter and Karaletsos), on Pyro."""

    def __init__(self, ours: Training) -> None:
        tyxe: Any = import_module("tyxe")
        pyro: Any = import_module("pyro")
        super().__init__(perceptron([nn.Linear(*sizes) for sizes in ours.layers]), ours)
        scale = float(nn.functional.softplus(torch.tensor(ours.recipe.initial_rho)))
        self._bnn = tyxe.VariationalBNN(
            self.network,
            tyxe.priors.IIDPrior(pyro.distributions.Normal(0.0, 1.0)),
            tyxe.likelihoods.Categorical(dataset_size=len(self.y)),
            partial(tyxe.guides.AutoNormal, init_scale=scale),
        )
        settings = {"lr": self.recipe.learning_rate, "amsgrad": True}
        self._optimizer = pyro.optim.Adam(settings)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.batches()

    def train(self) -> None:
        """Train for the recipe's epochs, by its own loop."""
        self._bnn.fit(self, self._optimizer, self.epochs)


PACKAGES: dict[str, Callable[[Training], InMemoryLoop]] = {
    "bayesian-torch": BayesianTorchLoop,
    "torch-uncertainty": TorchUncertaintyLoop,
    "TyXe": TyXeLoop,
}
"""Other people's layers in our loop; each raises `ImportError` where its package is missing."""
