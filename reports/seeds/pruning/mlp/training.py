"""Training and pruning of the MLP of the BAdam paper's Fig. 2, by every method.

The MLP has two hidden layers of 400 units and classifies MNIST. Each method gives a mean and a
standard deviation to every weight. The paper states no settings for the methods other than BAdam;
our settings are in `methods/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

import vcl_radial as vr
from reports.seeds.pruning.mlp.pruning import Trained, accuracies
from reports.seeds.pruning.settings import MLPData, MLPRecipe
from reports.seeds.pruning.training import PruningTraining
from vcl_radial.data.streams import TensorStream, load_dataset, split_stream
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.nn import GaussianNetwork, variational_weights
from vcl_radial.tracks.continual import networks
from vcl_radial.tracks.continual.methods import method_of, optimizer_for
from vcl_radial.tracks.continual.training import StreamTasks
from vcl_radial.training.losses import Epoch


class MLPTraining(PruningTraining):
    """An MLP that is trained and pruned."""

    def prune(self) -> dict[str, Any]:
        """Test accuracy over the pruned share, in both orders."""
        stream = self.data
        trained = train(self.run.recipe, stream, self.run.seed, self.on_epoch)
        x, labels = stream.inputs(0, "test"), stream.labels(0, "test")
        numbers = {"magnitude": accuracies(trained, None, x, labels)}
        if trained.scales is not None:
            numbers["signal-to-noise"] = accuracies(trained, trained.scales, x, labels)
        return numbers


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
    on_epoch: Callable[[Epoch], object] = lambda epoch: None,
) -> Trained:
    """Train a network by the suite's method, and return its posterior.

    Everything is on the device of the stream.

    Raises:
        Diverged: the loss is no longer a finite number.
    """
    with seeded_rng(seed, stream.x.device):
        network = make_network(recipe, stream).to(stream.x.device)
        trainer = vr.Trainer(
            method_of(recipe, network),
            optimizer=optimizer_for(recipe),
            epochs=recipe.epochs,
            schedule=recipe.schedule,
            seed=None,
            measure=False,
            on_epoch=on_epoch,
        )
        network = trainer.fit(StreamTasks(stream, recipe)).method.network
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
