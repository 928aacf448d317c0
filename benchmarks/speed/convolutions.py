"""A training step of convolutional networks over that of fine-tuning (`naive`).

Convnet: `network = "convnet"`, four convolutions and a dense layer, on the second task of a stream
of images of 28x28. ResNet and VGG: those of the retinopathy track, 16 channels, for drawn
photographs of 64x64; decoding and augmentation of the batches are in a step. All are trained as
`vcl-radial run` trains them.
"""

from __future__ import annotations

from itertools import product

from benchmarks.speed.data import noise
from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Keys, Row, Setting, compare
from benchmarks.speed.step import RATIO, REFERENCE
from benchmarks.speed.training import EPOCH, STEP, TWO_TASKS, Epochs, Training
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy.prepare import prepare
from vcl_radial.tracks.retinopathy.training import Sites, trainer_of

METHODS = ("naive", "gaussian-vcl", "radial-vcl")
ENDLESS = 10**6
"""Epochs of a training that lasts as long as it is measured."""

PICTURES = (Ratios("convolutions", f"One training step of convolutions, {RATIO}", RATIO),)


def measure(setting: Setting) -> list[Row]:
    """Seconds per step and their ratios, for each network and size of a batch."""
    sizes = setting.sizes
    setting = setting.on(noise(setting.scratch, 4, sizes.convolution_images, 1))
    rows: list[Row] = []
    for network, batch in product(("convnet", "resnet", "vgg"), sizes.convolution_batches):
        keys = {"network": network, "batch_size": batch}
        stream_keys = {**sizes.recipe, **TWO_TASKS, **keys}
        work = {
            method: Training(method, stream_keys, setting).fill(sizes.unit_seconds).step
            if network == "convnet"
            else PhotographTraining(method, keys, setting).step
            for method in METHODS
        }
        size = f"{network}, batch={batch}"
        rows += compare(work, setting, STEP, reference=REFERENCE, size=size)
    return rows


class PhotographTraining:
    """A training on a site of photographs, epoch by epoch as in `vcl-radial run`.

    Args:
        method: a name of `baselines/retinopathy/`.
        keys: changed keys of the recipe and the data, as for `--set`.
        setting: device, clock and keys of the data.
    """

    def __init__(self, method: str, keys: Keys, setting: Setting) -> None:
        data = {"data.patients": setting.sizes.patients, "data.validation": 0, "select": "last"}
        keys = {**data, **setting.sizes.photographs, **keys}
        (planned,) = plan("retinopathy-synthetic", [method], [0], keys)
        (site,) = prepare(planned.data)
        recipe, seed, device = planned.recipe, planned.seed, setting.device
        self.trainer = trainer_of(recipe, site.data.size, seed, device)
        self._steps = Epochs(setting.clock)
        self.trainer.epochs, self.trainer.on_step = ENDLESS, self._steps.end
        self._epochs = self.trainer.steps(Sites(recipe, [site], seed, device))

    def step(self) -> dict[str, float]:
        """Train one epoch of at least two steps; return the seconds of a step after the first."""
        _, seconds = self._steps.measure(lambda: next(self._epochs))
        return {STEP: seconds[EPOCH]}
