"""A training step of convolutional networks over that of fine-tuning (`naive`).

The small convolutional network trains on the second task of a stream of images, the ResNet and the
VGG of the retinopathy track on drawn photographs: all as `vcl-radial run` trains them.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from benchmarks.speed.data import noise
from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Images, Result, Row, Setting, rows_of
from benchmarks.speed.step import RATIO, compiled_pass, with_ratios
from benchmarks.speed.timing import Measurement, measure_in_turn
from benchmarks.speed.training import EPOCH, STEP, TWO_TASKS, Epochs, Training
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy.prepare import prepare
from vcl_radial.tracks.retinopathy.training import Sites, trainer_of

METHODS = ("naive", "gaussian-vcl", "radial-vcl")
PICTURES = (Ratios("convolutions", f"One training step of convolutions, {RATIO}", RATIO),)
_NO_VALIDATION = {"data.validation": 0, "select": "last"}


def measure(setting: Setting) -> Result:
    """Seconds per step and their ratios, for each network and size of a batch."""
    sizes = setting.sizes
    images = noise(setting.scratch / "convolutions", 4, sizes.convolution_images, 1)
    rows: list[Row] = []
    for network, batch in product(("convnet", "resnet", "vgg"), sizes.convolution_batches):
        keys = {"network": network, "batch_size": batch}
        work: dict[str, Measurement] = {
            method: small(method, keys, images, setting).train
            if network == "convnet"
            else PhotographTraining(method, keys, setting).train
            for method in METHODS
        }
        table = with_ratios(measure_in_turn(work, setting.repeats)[STEP])
        rows += rows_of("convolutions", table, f"{network}, batch={batch}")
    note = (
        'Convnet: `network = "convnet"`, four convolutions and a dense layer, for images of '
        "28x28. ResNet and VGG: those of the retinopathy track, 16 channels, for photographs "
        "of 64x64; decoding and augmentation of the batches are in a step."
    )
    return Result(rows, [note, compiled_pass(setting.device)])


def small(method: str, keys: dict[str, Any], images: Images, setting: Setting) -> Training:
    """Warm up a training of the small network, which lasts as long as a unit should."""
    keys = {**setting.sizes.recipe, **TWO_TASKS, **keys}
    training = Training(method, keys, images, setting)
    training.fill(setting.sizes.unit_seconds)
    return training


ENDLESS = 10**6
"""Epochs of a training that is measured until the clock stops it."""


class PhotographTraining:
    """A training on a site of photographs, epoch by epoch as in `vcl-radial run`.

    Args:
        method: a name of `baselines/retinopathy/`.
        keys: changed keys of the recipe and the data, as for `--set`.
        setting: device, clock and keys of the data.
    """

    def __init__(self, method: str, keys: dict[str, Any], setting: Setting) -> None:
        keys = {**_NO_VALIDATION, **setting.sizes.photographs, **keys}
        (planned,) = plan("retinopathy-synthetic", [method], [0], keys)
        (site,) = prepare(planned.data)
        recipe, seed, device = planned.recipe, planned.seed, setting.device
        self._steps = Epochs(setting.clock)
        self._trainer = trainer_of(recipe, site.data.size, seed, device)
        self._trainer.epochs, self._trainer.on_step = ENDLESS, self._steps.end
        self._epochs = self._trainer.steps(Sites(recipe, [site], seed, device))
        self.train()

    def train(self) -> dict[str, float]:
        """Train one epoch of at least two steps; return the seconds of a step after the first."""
        _, seconds = self._steps.measure(lambda: next(self._epochs))
        return {STEP: seconds[EPOCH]}
