"""The same task as one would train it on stock Avalanche today: its loaders, layers by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from avalanche.benchmarks import nc_benchmark
from avalanche.models import MultiTaskModule
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.templates import SupervisedTemplate
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, relu, softplus
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Compose, Normalize, ToTensor

from benchmarks.speed.setting import Images
from benchmarks.speed.timing import Work
from benchmarks.speed.training import InMemoryLoop, Training, perceptron
from vcl_radial.data.streams import ImageData, load_dataset


class PlainBayesianLinear(nn.Module):
    """A mean-field Gaussian layer whose weights are drawn anew at every call."""

    prior_mean: Tensor
    prior_scale: Tensor

    def __init__(self, in_features: int, out_features: int, rho: float) -> None:
        super().__init__()
        shape = (out_features, in_features + 1)  # the bias is the last column
        self.mean = nn.Parameter(torch.randn(shape) * math.sqrt(2 / in_features))
        self.rho = nn.Parameter(torch.full(shape, rho))
        self.register_buffer("prior_mean", torch.zeros(shape))
        self.register_buffer("prior_scale", torch.ones(shape))

    def forward(self, x: Tensor) -> Tensor:
        """Apply one draw of the layer."""
        w = self.mean + softplus(self.rho) * torch.randn_like(self.mean)
        return linear(x, w[:, :-1], w[:, -1])

    def kl(self) -> Tensor:
        """KL(q || p) in nats."""
        ratio = softplus(self.rho) / self.prior_scale
        shift = (self.mean - self.prior_mean) / self.prior_scale
        return 0.5 * (ratio.square() + shift.square() - 1 - 2 * ratio.log()).sum()

    @torch.no_grad()
    def consolidate(self) -> None:
        """Make the posterior the prior."""
        self.prior_mean.copy_(self.mean)
        self.prior_scale.copy_(softplus(self.rho))


class PlainMultiHeadMLP(MultiTaskModule):  # type: ignore[misc]
    """Hidden layers and a head for every task, chosen by Avalanche."""

    def __init__(
        self,
        layers: Sequence[tuple[int, int]],
        tasks: int,
        layer: Callable[[int, int], nn.Module],
    ) -> None:
        super().__init__()
        self.body = nn.ModuleList(layer(*sizes) for sizes in layers[:-1])
        self.heads = nn.ModuleList(layer(*layers[-1]) for _ in range(tasks))

    def forward_single_task(self, x: Tensor, task_label: int) -> Tensor:
        """Logits of one task's head."""
        x = x.flatten(1)
        for apply in self.body:
            x = relu(apply(x))
        logits: Tensor = self.heads[task_label](x)
        return logits


class PlainVCL(SupervisedTemplate):  # type: ignore[misc]
    """VCL on Avalanche's own loaders: loss = mean NLL + KL / N."""

    def _layers(self) -> list[PlainBayesianLinear]:
        heads = [self.model.heads[task] for task in self.experience.task_labels]
        return [*self.model.body, *heads]

    def criterion(self) -> Tensor:
        """The negative evidence lower bound over N."""
        kl = torch.stack([layer.kl() for layer in self._layers()]).sum()
        return cross_entropy(self.mb_output, self.mb_y) + kl / len(self.adapted_dataset)

    def _after_training_exp(self, **kwargs: Any) -> None:
        for layer in self._layers():
            layer.consolidate()
        super()._after_training_exp(**kwargs)


class PILImages(Dataset[tuple[Any, int]]):
    """Images one at a time, as pictures or transformed."""

    def __init__(
        self, images: Tensor, labels: Tensor, transform: Callable[[Any], Any] = lambda image: image
    ) -> None:
        self.images, self.transform = images, transform
        self.targets: list[int] = labels.tolist()

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.transform(Image.fromarray(self.images[index].numpy())), self.targets[index]


def second_task(
    strategy: Callable[..., Any],
    layer: Callable[[int, int], nn.Module],
    ours: Training,
    images: Images,
    device: str,
) -> Work:
    """Training of the second task of `ours`, in the same batches, as on Avalanche alone.

    Transforms and loader are those of Avalanche's `SplitFMNIST`, the rows are ours (without the
    validation images), and the evaluator has no metrics.

    Args:
        strategy: a class of strategies.
        layer: function from numbers of inputs and outputs to a layer.
        ours: training with the task and recipe, whose first task was trained.
        images: the data.
        device: device of the network and the batches.
    """
    stream, recipe, data = ours.run.stream, ours.recipe, load_dataset(images.dataset, images.folder)
    rows = torch.cat(stream.train)
    benchmark = nc_benchmark(
        PILImages(data.train_x[rows], data.train_y[rows]),
        PILImages(data.test_x, data.test_y),
        n_experiences=stream.n_tasks,
        task_labels=True,
        shuffle=False,
        class_ids_from_zero_in_each_exp=True,
        train_transform=_transform(data),
        eval_transform=_transform(data),
    )
    network = PlainMultiHeadMLP(ours.layers, stream.n_tasks, layer)
    trained = strategy(
        model=network,
        optimizer=torch.optim.Adam(network.parameters(), lr=recipe.learning_rate, amsgrad=True),
        train_mb_size=recipe.batch_size,
        train_epochs=1,
        device=device,
        evaluator=EvaluationPlugin(),
    )
    first, second, *_ = benchmark.train_stream
    trained.train([first], eval_streams=[], drop_last=recipe.drop_last)
    trained.train_epochs = recipe.epochs
    return lambda: trained.train([second], eval_streams=[], drop_last=recipe.drop_last)


class LoaderLoop(InMemoryLoop):
    """The second task of `ours` by the usual handwritten loop.

    As in G. van de Ven's `continual-learning`, it has a `DataLoader` of pictures, zero_grad, the
    loss of a batch, backward, and a step of PyTorch's Adam.
    """

    def __init__(self, ours: Training, images: Images) -> None:
        super().__init__(perceptron([nn.Linear(*sizes) for sizes in ours.layers]), ours)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=self.recipe.learning_rate, amsgrad=True
        )
        data = load_dataset(images.dataset, images.folder)
        pictures = PILImages(data.train_x[ours.run.stream.train[1]], self.y, _transform(data))
        self._loader = DataLoader(
            pictures, self.recipe.batch_size, shuffle=True, drop_last=self.recipe.drop_last
        )

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of an epoch, decoded one picture after another."""
        for x, y in self._loader:
            yield x.flatten(1).to(self.x.device), y.to(self.x.device)


def _transform(data: ImageData) -> Compose:
    std, mean = torch.std_mean(data.train_x.float() / 255, correction=0)
    return Compose([ToTensor(), Normalize((mean.item(),), (std.item(),))])
