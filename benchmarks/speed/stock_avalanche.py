"""The same task by stock loaders: images that are decoded and transformed one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from avalanche.benchmarks import nc_benchmark
from avalanche.training.plugins import EvaluationPlugin
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Compose, Normalize, ToTensor

from benchmarks.speed.plain_layers import PlainMultiHeadMLP
from benchmarks.speed.setting import Images
from benchmarks.speed.training import InMemoryLoop, Training, perceptron
from vcl_radial.data.streams import ImageData, TensorStream, load_dataset


class PILImages(Dataset[tuple[Any, int]]):
    """Images as torchvision's Fashion-MNIST gives them: one at a time, as a picture.

    With a transform it is that of the picture.
    """

    def __init__(
        self, images: Tensor, labels: Tensor, transform: Callable[[Any], Any] | None = None
    ) -> None:
        self.images, self.transform = images, transform
        self.targets: list[int] = labels.tolist()

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = Image.fromarray(self.images[index].numpy())
        return self.transform(image) if self.transform else image, self.targets[index]


class StockTraining:
    """The second task of `ours`, in the same batches, as a user of Avalanche would train it.

    Transforms and loader are those of Avalanche's `SplitFMNIST`, the rows are ours (the validation
    images are left out), and the evaluator has no metrics.

    Args:
        strategy: a class of strategies.
        layer: makes a layer of so many inputs and outputs.
        ours: whose task and recipe these are.
        images: the data.
        device: of the network and the batches.
    """

    def __init__(
        self,
        strategy: Callable[..., Any],
        layer: Callable[[int, int], nn.Module],
        ours: Training,
        images: Images,
        device: str,
    ) -> None:
        stream, recipe = ours.run.stream, ours.recipe
        benchmark = _benchmark(load_dataset(images.dataset, images.folder), stream)
        self._experiences = list(benchmark.train_stream)
        self._drop_last = recipe.drop_last
        network = PlainMultiHeadMLP(ours.layers, stream.n_tasks, layer)
        self.strategy: Any = strategy(
            model=network,
            optimizer=torch.optim.Adam(network.parameters(), lr=recipe.learning_rate, amsgrad=True),
            train_mb_size=recipe.batch_size,
            train_epochs=1,
            device=device,
            evaluator=EvaluationPlugin(),
        )
        self._train(0)
        self.strategy.train_epochs = recipe.epochs

    def train(self) -> None:
        """Train the second task once more."""
        self._train(1)

    def _train(self, task: int) -> None:
        self.strategy.train([self._experiences[task]], eval_streams=[], drop_last=self._drop_last)


class LoaderLoop(InMemoryLoop):
    """The second task of `ours` by the loop that is written by hand most often.

    As in G. van de Ven's `continual-learning`: a `DataLoader` of pictures, zero_grad, the loss of a
    batch, backward, a step of PyTorch's Adam; and nothing else.
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


def _benchmark(data: ImageData, stream: TensorStream) -> Any:
    rows = torch.cat(stream.train)
    transform = _transform(data)
    return nc_benchmark(
        PILImages(data.train_x[rows], data.train_y[rows]),
        PILImages(data.test_x, data.test_y),
        n_experiences=stream.n_tasks,
        task_labels=True,
        shuffle=False,
        class_ids_from_zero_in_each_exp=True,
        train_transform=transform,
        eval_transform=transform,
    )
