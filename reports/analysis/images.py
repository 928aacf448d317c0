"""The images of the analyses; they are small, so that a figure takes minutes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import avg_pool2d

from reports.papers.analysis import Setting
from vcl_radial.data.data_files import user_root
from vcl_radial.data.fundus.splits import Rows
from vcl_radial.data.streams.datasets import load_dataset
from vcl_radial.data.streams.preparation import standardised
from vcl_radial.reporting.figures.names import data_label
from vcl_radial.tracks.retinopathy.prepare import prepare
from vcl_radial.tracks.retinopathy.settings import DataSettings

TRAIN, TEST = 1500, 1000
"""Maximum number of images of each part."""
_SMALL_SIDE = 16


@dataclass(frozen=True, eq=False)
class Images:
    """Images, standardised over the pixels of the training set.

    Attributes:
        description: description of the images.
        train_x: float32 [N, D] or, of photographs, [N, 3, H, W].
        train_y: int64 [N].
        test_x: float32 [M, D] or [M, 3, H, W].
        test_y: int64 [M].
        classes: number of classes.
        real: whether the images are photographs, not drawn.
    """

    description: str
    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor
    classes: int
    real: bool = True


def load_images(setting: Setting) -> Images:
    """The first 1,500 training and 1,000 test images of a data set; nothing is downloaded.

    Fashion-MNIST where a data folder is named (on the command line or by `VCL_RADIAL_DATA`), else
    scikit-learn's digits. Images of 28x28 pixels are averaged over 2x2 pixels. The published order
    of the images is random; the first images in it are used.

    Raises:
        UserError: the named folder lacks files, or they are damaged.
    """
    named = user_root(setting.data_dir) is not None
    data = load_dataset("fashion-mnist" if named else "digits", setting.data_dir)
    x = standardised(data, flatten=False)
    size = f"{x.shape[-2]}x{x.shape[-1]}"
    if max(x.shape[-2:]) > _SMALL_SIDE:
        x = avg_pool2d(x, 2)
        size = f"{x.shape[-2]}x{x.shape[-1]}, averaged from {size}"
    train = min(TRAIN, len(data.train_x))
    test = min(TEST, len(data.test_x))
    flat, first_test = x.flatten(1), len(data.train_x)
    return Images(
        f"{data_label(data.name)}, the first {train:,} training and {test:,} test images ({size})",
        flat[:train].clone(),
        data.train_y[:train],
        flat[first_test : first_test + test].clone(),
        data.test_y[:test],
        data.n_classes,
    )


def load_eyes(setting: Setting, size: int, patients: int) -> Images:
    """Fundus photographs, referable or not, split between patients as in the track.

    APTOS where a data folder is named, else drawn pictures.

    Args:
        setting: the setting; its seed is the seed of the split.
        size: pixels along an edge.
        patients: number of patients to draw, with two pictures per patient.

    Raises:
        UserError: the named folder does not exist.
        DataError: the folder lacks photographs, or they are damaged.
    """
    named = user_root(setting.data_dir) is not None
    dataset = "aptos" if named else "synthetic"
    wanted = DataSettings(dataset=dataset, size=size, patients=patients, split_seed=setting.seed)
    (site,) = prepare(wanted, setting.data_dir, setting.say)
    labels, split = site.data.classes(), site.split

    def pixels(rows: Rows) -> Tensor:
        return site.normalisation(site.data.images(rows))

    return Images(
        f"{'photographs of APTOS' if named else 'drawn fundus pictures'}, {len(split.train):,} to "
        f"train on ({size}x{size})",
        pixels(split.train),
        labels[split.train],
        pixels(split.test),
        labels[split.test],
        classes=2,
        real=named,
    )
