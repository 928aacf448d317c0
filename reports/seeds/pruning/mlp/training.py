"""Training and pruning of the MLP of the BAdam paper's Fig. 2, by every method.

The MLP has two hidden layers of 400 units and classifies MNIST. Each method gives a mean and a
standard deviation to every weight. The paper states no settings for the methods other than BAdam;
our settings are in `methods/`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch import Tensor, nn

from reports.seeds.pruning.mlp.pruning import Trained, accuracies
from reports.seeds.pruning.settings import MLPData, MLPRecipe, MLPSpec
from reports.seeds.pruning.training import PruningTraining
from vcl_radial.data.streams import TensorStream, load_dataset, split_stream, to_avalanche
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.nn import GaussianNetwork, variational_weights
from vcl_radial.runs.training import NonResumableTraining, Step
from vcl_radial.system.quiet import quiet
from vcl_radial.tracks.continual import networks
from vcl_radial.tracks.continual.methods import make_strategy


class MLPTraining(PruningTraining, NonResumableTraining):
    """An MLP that is trained and pruned; after an interruption it starts again.

    Args:
        run: the run.
        stream: the images as one task.
        report: see `PruningTraining`.
    """

    def __init__(self, run: MLPSpec, stream: TensorStream, report: Callable[[Step], None]) -> None:
        super().__init__(run, report)
        self.epochs, self.stream = run.recipe.epochs, stream

    def train(self) -> None:
        """Test accuracy over the pruned share, in both orders."""
        started, stream = time.perf_counter(), self.stream
        trained = train(self.run.recipe, stream, self.run.seed, self._on_epoch)
        x, labels = stream.inputs(0, "test"), stream.labels(0, "test")
        self.numbers = {"magnitude": accuracies(trained, None, x, labels)}
        if trained.scales is not None:
            self.numbers["signal-to-noise"] = accuracies(trained, trained.scales, x, labels)
        self.seconds = time.perf_counter() - started

    def _on_epoch(self, epoch: int) -> None:
        news = f"epoch {epoch} of {self.epochs}"
        self.report(Step(0, news, epoch=epoch, epochs=self.epochs, news=news, at=epoch))


def load_stream(settings: MLPData, data_dir: Path | None, device: torch.device) -> TensorStream:
    """A data set as one task; pixels from 0 to 1, so that an unused pixel moves no weight.

    Raises:
        UserError: the data are missing.
        DataError: the data are damaged.
    """
    data = load_dataset(settings.dataset, data_dir)
    stream = split_stream(data, tasks=1, heads="single", validation=0.0)
    pixels = torch.cat([data.train_x, data.test_x]).flatten(1).float()
    return replace(stream, x=pixels / pixels.max()).to(device)


def train(
    recipe: MLPRecipe,
    stream: TensorStream,
    seed: int,
    on_epoch: Callable[[int], None] = lambda epoch: None,
) -> Trained:
    """Train a network by the suite's strategy, and return its posterior.

    Everything is on the device of the stream.

    Raises:
        Diverged: the loss is no longer a finite number.
    """
    device = stream.x.device
    with seeded_rng(seed, device), quiet():
        strategy = make_strategy(
            recipe,
            make_network(recipe, stream),
            tensor_stream=stream,
            device=device,
            evaluator=EvaluationPlugin(loggers=[]),
            plugins=[_EachEpoch(on_epoch)],
        )
        strategy.train(to_avalanche(stream).train_stream[0])
    network = strategy.network
    if recipe.posterior != "none":
        return Trained(*_variational(network))
    points = [
        parameter
        for module in network.modules()
        if isinstance(module, nn.Linear)
        for parameter in (module.weight, module.bias)
    ]
    means = [parameter.detach() for parameter in points]
    if isinstance(network, GaussianNetwork):
        scales = {id(q.mean): q.precision.rsqrt() for q in network.posteriors([0]).values()}
        return Trained(means, [scales[id(parameter)] for parameter in points])
    return Trained(means, None, recipe.dropout, recipe.mask_samples)


def make_network(recipe: MLPRecipe, stream: TensorStream) -> Any:
    """The network before training."""
    network: Any = networks.make_network(stream, recipe)
    if recipe.dropout:
        # Before the ReLU: a mask with its factor commutes with it.
        layers = (nn.Sequential(layer, nn.Dropout(recipe.dropout)) for layer in network.body)
        network.body = nn.ModuleList(layers)
    return network


@torch.no_grad()
def _variational(network: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """Means, and the standard deviations of single weights."""
    means: list[Tensor] = []
    scales: list[Tensor] = []
    for weights in variational_weights(network, [0]):
        noise = [block.weight_noise() for block in weights.posterior_blocks()]
        means += cast(tuple[Tensor, Tensor], weights.mean())
        scales += cast(tuple[Tensor, Tensor], weights.split(noise))
    return means, scales


class _EachEpoch(SupervisedPlugin):  # type: ignore[misc]  # Avalanche has no types
    def __init__(self, on_epoch: Callable[[int], None]) -> None:
        super().__init__()
        self.on_epoch = on_epoch

    def after_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        self.on_epoch(strategy.clock.train_exp_epochs + 1)
