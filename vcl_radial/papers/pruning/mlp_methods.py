"""The networks of the BAdam paper's Fig. 2: an MLP on MNIST with two hidden layers of 400 units.

Each method gives a mean and a standard deviation to every weight. Of the methods beside BAdam the
paper states no settings; ours are here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch import Tensor, nn

from vcl_radial.data.streams import TensorStream, load_dataset, split_stream, to_avalanche
from vcl_radial.nn import (
    MLP,
    GaussianNetwork,
    PosteriorSettings,
    variational_weights,
)
from vcl_radial.predict import own_randomness
from vcl_radial.quiet import quiet
from vcl_radial.runs.result_file import Unit
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.continual.training import make_strategy

Layer: TypeAlias = tuple[Tensor, Tensor]
"""Of a fully connected layer: what belongs to its weights `[out, in]` and its biases `[out]`."""

HIDDEN = [400, 400]
DROPOUT = 0.2


@dataclass(frozen=True)
class Method:
    """How a network is trained.

    Attributes:
        recipe: as for any run of the suite.
        dropout: the rate in the hidden layers, in training.
        mask_samples: masks of a prediction; 0 predicts without dropout.
        note: what the paper leaves open and is chosen here, or why there is no sigma.
    """

    recipe: Recipe
    dropout: float = 0.0
    mask_samples: int = 0
    note: str = ""


def _recipe(
    strategy: str, posterior: Any = "none", learning_rate: float = 1e-3, **settings: Any
) -> Recipe:
    return Recipe(
        strategy=strategy,
        posterior=posterior,
        hidden=HIDDEN,
        optimizer="adam",
        learning_rate=learning_rate,
        epochs=100,
        batch_size=128,
        drop_last=False,
        **settings,
    )


METHODS = {
    "badam": Method(
        _recipe(
            "badam",
            kl_weight=0.0,
            options={"beta2": 0.99999, "accumulate": False, "predict_at_means": True},
        ),
        dropout=DROPOUT,
        note="as in Appendix D.2: dropout 0.2, no L2 penalty, beta_2 = 0.99999",
    ),
    "vadam": Method(
        _recipe(
            "vadam",
            learning_rate=3e-3,
            prior_scale=1.0,
            initial_noise=0.03,
            options={"predict_at_means": True},
        ),
        note="prior N(0, 1), learning rate 3e-3 and initial noise of a weight 0.03; taken after a "
        "look at 1e-3, at which it is slow",
    ),
    "bbb": Method(
        _recipe("vcl", "gaussian", prior_scale=0.1, initial_rho=-6.0),
        note="Gaussian mean-field posterior, prior N(0, 0.1^2)",
    ),
    "mc-dropout": Method(
        _recipe("naive"),
        dropout=DROPOUT,
        mask_samples=20,
        note="dropout 0.2, 20 masks in a prediction. A weight under dropout, w z / keep with z "
        "Bernoulli, has the same ratio |mean| / sd = sqrt(keep / (1 - keep)) whatever w is, so it "
        "has no order by signal-to-noise: it is pruned by |w|",
    ),
    "radial": Method(
        _recipe("vcl", "radial", prior_scale=0.1, initial_rho=-2.5),
        note="not in the paper: radial posterior over each layer, prior N(0, 0.1^2); sigma is the "
        "standard deviation of one weight, scale / sqrt(D)",
    ),
}
"""By name. The first four are the paper's."""


class MLPUnit(Unit):
    """One network, trained and pruned."""

    dataset: str
    recipe: Recipe
    dropout: float
    mask_samples: int


def make_unit(name: str, seed: int, dataset: str, epochs: int | None = None) -> MLPUnit:
    """The unit of a method of `METHODS`; epochs in place of its own."""
    method = METHODS[name]
    recipe = method.recipe.model_copy(update={"epochs": epochs or method.recipe.epochs})
    return MLPUnit(
        method=name,
        seed=seed,
        dataset=dataset,
        recipe=recipe,
        dropout=method.dropout,
        mask_samples=method.mask_samples,
    )


@dataclass(frozen=True)
class Trained:
    """A network of fully connected layers whose weights have means and standard deviations.

    Attributes:
        means: of each layer.
        scales: their standard deviations; None where the method gives no order.
        dropout: the rate in a prediction.
        samples: masks of a prediction.
    """

    means: Sequence[Layer]
    scales: Sequence[Layer] | None
    dropout: float = 0.0
    samples: int = 1


def load_stream(dataset: str, data_dir: Path | None) -> TensorStream:
    """A data set as one task; pixels from 0 to 1, so that an unused pixel moves no weight.

    Raises:
        UserError: the data are not there.
        DataError: they are damaged.
    """
    data = load_dataset(dataset, data_dir)
    stream = split_stream(data, tasks=1, heads="single", validation=0.0)
    pixels = torch.cat([data.train_x, data.test_x]).flatten(1).float()
    return replace(stream, x=pixels / pixels.max())


def train(
    method: Method,
    stream: TensorStream,
    seed: int,
    on_epoch: Callable[[int], None] = lambda n: None,
) -> Trained:
    """Train a network by the suite's own strategy and read its posterior off.

    Raises:
        Diverged: the loss is no longer a finite number.
    """
    torch.set_flush_denormal(True)
    recipe = method.recipe
    with own_randomness(seed, torch.device("cpu")), quiet():
        strategy = make_strategy(
            recipe,
            make_network(method, stream),
            tensor_stream=stream,
            evaluator=EvaluationPlugin(loggers=[]),
            plugins=[_EachEpoch(on_epoch)],
        )
        strategy.train(to_avalanche(stream).train_stream[0])
    network = strategy.network
    if recipe.posterior != "none":
        return Trained(*_variational(network))
    if isinstance(network, GaussianNetwork):
        names = {id(q.mean): q.precision.rsqrt() for q in network.posteriors([0]).values()}
        linears = _linears(network)
        scales = [(names[id(layer.weight)], names[id(layer.bias)]) for layer in linears]
        return Trained(_point(linears), scales)
    return Trained(_point(_linears(network)), None, method.dropout, method.mask_samples)


def make_network(method: Method, stream: TensorStream) -> MLP:
    """The network before training."""
    recipe = method.recipe
    posterior = None
    if recipe.posterior != "none":
        posterior = PosteriorSettings(
            recipe.posterior, initial_rho=recipe.initial_rho, prior_scale=recipe.prior_scale
        )
    network = MLP(
        stream.x.shape[1],
        stream.n_classes,
        hidden=recipe.hidden,
        multi_head=False,
        posterior=posterior,
    )
    if method.dropout:
        # Before the ReLU, which a mask with its factor commutes with.
        network.body = nn.ModuleList(
            nn.Sequential(layer, nn.Dropout(method.dropout)) for layer in network.body
        )
    return network


def _linears(network: nn.Module) -> list[nn.Linear]:
    return [module for module in network.modules() if isinstance(module, nn.Linear)]


def _point(linears: Sequence[nn.Linear]) -> list[Layer]:
    return [(layer.weight.detach(), layer.bias.detach()) for layer in linears]


@torch.no_grad()
def _variational(network: nn.Module) -> tuple[list[Layer], list[Layer]]:
    """Means, and the standard deviations of single weights, layer by layer."""
    means, scales = [], []
    for weights in variational_weights(network, [0]):
        means.append(cast(Layer, weights.mean()))
        noise = [block.weight_noise() for block in weights.posterior_blocks()]
        scales.append(cast(Layer, weights.split(noise)))
    return means, scales


class _EachEpoch(SupervisedPlugin):  # type: ignore[misc]  # Avalanche has no types
    def __init__(self, on_epoch: Callable[[int], None]) -> None:
        super().__init__()
        self.on_epoch = on_epoch

    def after_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        self.on_epoch(strategy.clock.train_exp_epochs + 1)
