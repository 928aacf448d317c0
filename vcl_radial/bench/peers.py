"""A training epoch of other Bayesian layers and loaders, against ours.

All train Gaussian VCL's network on the same images in the same batches with AMSGrad. The layers of
other packages are given our loop on in-memory tensors with a fused optimiser, which is the
best case for them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vcl_radial.bench.pictures import Ratios
from vcl_radial.bench.setting import Result, Setting, rows_of
from vcl_radial.bench.stock_avalanche import StockTraining
from vcl_radial.bench.timing import Work, interleaved, ratios
from vcl_radial.bench.training import InMemoryLoop, Training, perceptron

OURS = "gaussian-vcl"
RATIO = f"ratio to {OURS}"
PICTURES = (Ratios("peers", f"One training epoch, {RATIO}", RATIO),)
NOT_INSTALLED = "not installed: pip install 'vcl-radial[bench]'"


def measure(setting: Setting) -> Result:
    """Seconds per epoch of each, and its ratio to ours."""
    sizes, clock = setting.sizes, setting.clock
    keys = {"epochs": sizes.epochs, **sizes.recipe}
    ours = Training("gaussian-vcl", keys, setting.images, setting.device, clock)
    variants: dict[str, Work] = {
        OURS: ours.train,
        "per layer, stock Avalanche": StockTraining(ours, setting.images, setting.device).train,
    }
    notes = []
    for package, loop in PACKAGES.items():
        try:
            variants[package] = loop(ours).train
        except ImportError:
            notes.append(f"{package}: {NOT_INSTALLED}")
    seconds = interleaved(variants, setting.repeats, clock)
    epochs = {name: [call / sizes.epochs for call in calls] for name, calls in seconds.items()}
    rows = rows_of("peers", epochs, "seconds per epoch")
    rows += rows_of("peers", ratios(seconds, OURS), RATIO)
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


PACKAGES: dict[str, Callable[[Training], InMemoryLoop]] = {
    "bayesian-torch": BayesianTorchLoop,
    "torch-uncertainty": TorchUncertaintyLoop,
}
"""Other people's layers in our loop; each raises `ImportError` where its package is missing."""
