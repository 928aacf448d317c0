"""The same task on stock Avalanche: images that are decoded and transformed one by one."""

from __future__ import annotations

from typing import Any

import torch
from avalanche.benchmarks import nc_benchmark
from avalanche.training.plugins import EvaluationPlugin
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms import Compose, Normalize, ToTensor

from vcl_radial.bench.plain_layers import PlainMultiHeadMLP, PlainVCL
from vcl_radial.bench.setting import Images
from vcl_radial.bench.training import Training
from vcl_radial.data.streams import ImageData, TensorStream, load_dataset


class PILImages(Dataset[tuple[Image.Image, int]]):
    """Images as torchvision's Fashion-MNIST gives them: one at a time, as a picture."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images = images
        self.targets: list[int] = labels.tolist()

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.fromarray(self.images[index].numpy(), mode="L"), self.targets[index]


class StockTraining:
    """The second task of `ours`, in the same batches, as a user of Avalanche would train it.

    Transforms and loader are those of Avalanche's `SplitFMNIST`, the rows are ours (the validation
    images are left out), and the evaluator has no metrics.
    """

    def __init__(self, ours: Training, images: Images, device: str) -> None:
        stream, recipe = ours.run.stream, ours.recipe
        benchmark = _benchmark(load_dataset(images.dataset, images.folder), stream)
        self._experiences = list(benchmark.train_stream)
        self._drop_last = recipe.drop_last
        network = PlainMultiHeadMLP(ours.layers, stream.n_tasks, recipe.initial_rho)
        self.strategy: Any = PlainVCL(
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


def _benchmark(data: ImageData, stream: TensorStream) -> Any:
    rows = torch.cat(stream.train)
    std, mean = torch.std_mean(data.train_x.float() / 255, correction=0)
    transform = Compose([ToTensor(), Normalize((mean.item(),), (std.item(),))])
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
