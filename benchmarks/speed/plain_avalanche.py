"""The same task on unmodified Avalanche: Avalanche's loaders, and layers written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from avalanche.benchmarks import nc_benchmark
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.templates import SupervisedTemplate
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, softplus
from torch.utils.data import Dataset
from torchvision.transforms import Compose, Normalize, ToTensor

from benchmarks.speed.setting import Setting
from benchmarks.speed.timing import Work
from benchmarks.speed.training import Training, perceptron
from vcl_radial.data.streams import load_dataset


class PlainBayesianLinear(nn.Module):
    """A mean-field Gaussian layer that draws new weights at every call.

    The prior is standard normal, which is the cheapest for this layer.
    """

    def __init__(self, in_features: int, out_features: int, rho: float) -> None:
        super().__init__()
        shape = (out_features, in_features + 1)  # the bias is the last column
        self.mean = nn.Parameter(torch.randn(shape) * math.sqrt(2 / in_features))
        self.rho = nn.Parameter(torch.full(shape, rho))

    def forward(self, x: Tensor) -> Tensor:
        """Apply one draw of the layer."""
        w = self.mean + softplus(self.rho) * torch.randn_like(self.mean)
        return linear(x, w[:, :-1], w[:, -1])

    def kl(self) -> Tensor:
        """KL(q || p) in nats."""
        scale = softplus(self.rho)
        return 0.5 * (scale.square() + self.mean.square() - 1 - 2 * scale.log()).sum()


class PlainVCL(SupervisedTemplate):  # type: ignore[misc]
    """VCL on Avalanche's loaders: loss = mean NLL + KL / N."""

    def criterion(self) -> Tensor:
        """The negative evidence lower bound over N."""
        layers = [layer for layer in self.model if isinstance(layer, PlainBayesianLinear)]
        kl = torch.stack([layer.kl() for layer in layers]).sum()
        return cross_entropy(self.mb_output, self.mb_y) + kl / len(self.adapted_dataset)


class PILImages(Dataset[tuple[Any, int]]):
    """Images one at a time, as pictures."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images = images
        self.targets: list[int] = labels.tolist()

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return Image.fromarray(self.images[index].numpy()), self.targets[index]


def second_task(
    strategy: Callable[..., Any],
    layer: Callable[[int, int], nn.Module],
    ours: Training,
    setting: Setting,
) -> Work:
    """Training of the second task of `ours`, in the same batches, as on Avalanche alone.

    Transforms and loader come from Avalanche's `SplitFMNIST`. The rows are ours (without the
    validation images), and the evaluator has no metrics.

    Args:
        strategy: a class of strategies.
        layer: function from numbers of inputs and outputs to a layer.
        ours: training with the task and recipe.
        setting: the setting with data and device.
    """
    recipe = ours.recipe
    data = load_dataset(setting.images.dataset, setting.images.folder)
    std, mean = torch.std_mean(data.train_x.float() / 255, correction=0)
    transform = Compose([ToTensor(), Normalize((mean.item(),), (std.item(),))])
    labels = ours.stream.labels(1, "train").cpu()
    pictures = PILImages(data.train_x[ours.run.stream.train[1]], labels)
    benchmark = nc_benchmark(
        *(pictures, pictures),
        n_experiences=1,
        task_labels=False,
        train_transform=transform,
        eval_transform=transform,
    )
    network = nn.Sequential(nn.Flatten(), *perceptron([layer(*sizes) for sizes in ours.layers]))
    trained = strategy(
        model=network,
        optimizer=torch.optim.Adam(network.parameters(), lr=recipe.learning_rate, amsgrad=True),
        train_mb_size=recipe.batch_size,
        train_epochs=recipe.epochs,
        device=setting.device,
        evaluator=EvaluationPlugin(),
    )
    return lambda: trained.train(
        benchmark.train_stream, eval_streams=[], drop_last=recipe.drop_last
    )
