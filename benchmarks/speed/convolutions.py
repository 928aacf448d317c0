"""A training step of convolutional networks over that of fine-tuning (`naive`).

The small convolutional network trains on the second task of a stream of images, the ResNet and the
VGG of the retinopathy track on drawn photographs: all as `vcl-radial run` trains them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from benchmarks.speed.data import noise
from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Images, Result, Row, Setting
from benchmarks.speed.step import RATIO, compiled_pass, ratio_rows
from benchmarks.speed.timing import Clock
from benchmarks.speed.training import TWO_TASKS, Training, step_seconds
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy.prepare import prepare
from vcl_radial.tracks.retinopathy.training import Training as OfSite

NAME = "convolutions"
METHODS = ("naive", "gaussian-vcl", "radial-vcl")
PICTURES = (Ratios(NAME, f"One training step of convolutions, {RATIO}", RATIO),)

NO_VALIDATION = {"data.validation": 0, "select": "last"}
OF_PHOTOGRAPHS = ("resnet", "vgg")


def measure(setting: Setting) -> Result:
    """Seconds per step and their ratios, for each network and size of a batch."""
    sizes = setting.sizes
    images = noise(setting.scratch / NAME, 4, sizes.convolution_images, 1)
    rows: list[Row] = []
    for batch in sizes.convolution_batches:
        small = {method: _small(method, batch, images, setting) for method in METHODS}
        seconds = step_seconds(small, setting.repeats, setting.clock)
        rows += ratio_rows(NAME, f"convnet, batch={batch}", seconds)
    for network, batch in product(OF_PHOTOGRAPHS, sizes.convolution_batches):
        keys = {**NO_VALIDATION, **sizes.photographs, "network": network, "batch_size": batch}
        photographs = {m: PhotographTraining(m, keys, setting) for m in METHODS}
        seconds = step_seconds(photographs, setting.repeats, setting.clock)
        rows += ratio_rows(NAME, f"{network}, batch={batch}", seconds)
    return Result(
        rows,
        [
            'Convnet: `network = "convnet"`, four convolutions and a dense layer, for images of '
            "28x28. ResNet and VGG: those of the retinopathy track, 16 channels, for photographs "
            "of 64x64; decoding and augmentation of the batches are in a step.",
            compiled_pass(setting.device),
        ],
    )


class PhotographTraining:
    """A site of photographs that is trained on epoch by epoch, as `vcl-radial run` does.

    Args:
        method: a name of `baselines/retinopathy/`.
        keys: those of the recipe and the data that are to differ, as for `--set`.
        setting: device and clock.
    """

    def __init__(self, method: str, keys: dict[str, Any], setting: Setting) -> None:
        (planned,) = plan("retinopathy-synthetic", [method], [0], keys)
        (site,) = prepare(planned.data)
        self._clock: Clock = setting.clock
        self.of_site = OfSite(planned.recipe, site, planned.seed, setting.device)
        self.step_seconds: list[float] = []
        """Of every call of `train`: the seconds of a step after the first."""
        self.train()

    def train(self) -> None:
        """Train for one epoch, of at least two steps."""
        ends: list[float] = []
        self.of_site.run_epoch(lambda: ends.append(self._clock()))
        self.step_seconds.append((ends[-1] - ends[0]) / (len(ends) - 1))

    def seconds_per_step(self, calls: Sequence[float]) -> list[float]:
        """Seconds of a step in each of the last calls of `train`."""
        return self.step_seconds[-len(calls) :]


def _small(method: str, batch: int, images: Images, setting: Setting) -> Training:
    keys = {**setting.sizes.recipe, **TWO_TASKS, "network": "convnet", "batch_size": batch}
    training = Training(method, keys, images, setting.device, setting.clock)
    training.fill(setting.sizes.unit_seconds)
    return training
