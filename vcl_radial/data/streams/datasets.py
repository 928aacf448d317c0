"""Image data sets by name: Fashion-MNIST, MNIST, notMNIST, CIFAR-10, Omniglot, a user's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from vcl_radial.config import outside
from vcl_radial.data.data_files import (
    CIFAR10,
    IDX_NAMES,
    OMNIGLOT,
    TEST_SHARE,
    UNCHECKED_DATASETS,
    published_files,
    required_root,
    user_files,
    user_root,
)
from vcl_radial.data.published import PUBLISHED
from vcl_radial.data.streams.choices import check_choice
from vcl_radial.data.streams.cifar import load_cifar10
from vcl_radial.data.streams.feature_file import with_features
from vcl_radial.data.streams.folders import cached_files
from vcl_radial.data.streams.idx import read_idx
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.image_folder import load_image_folder
from vcl_radial.data.streams.omniglot import load_omniglot
from vcl_radial.errors import DataError, bad_value, visible

_TEST_EVERY = 5


def load_dataset(
    name: str,
    data_dir: Path | None = None,
    *,
    image_size: int | None = None,
    test_share: float = TEST_SHARE,
    test_seed: int = 0,
    features: str | None = None,
) -> ImageData:
    """Load a data set by name: one of `DATASETS`, or `package.module:function`.

    Fashion-MNIST and MNIST are read from `data_dir`, else from the folder in the environment
    variable `VCL_RADIAL_DATA`, else from the cache folder, to which they are downloaded if they are
    not there. Nothing is written to the first two, and nothing is downloaded if they lack a file.
    notMNIST, CIFAR-10 (`load_cifar10`) and Omniglot (`load_omniglot`) are read from these two
    alone. The files of the three MNISTs are checked against the published checksums. `digits` comes
    with scikit-learn, and `glyphs` are drawn from the fonts of matplotlib.
    `idx-folder` is a user's own four IDX files, named like MNIST's, in `data_dir` or
    `VCL_RADIAL_DATA`; `image-folder` is a user's own image files there, `train/CLASS/*` and
    `test/CLASS/*`, or `CLASS/*` to be split (see `load_image_folder`). A function from outside is
    called with that folder, or None, and returns an `ImageData`.

    Args:
        name: The data set.
        data_dir: The folder with the files, in itself or in `raw/`; for a published data set also
            in its folder: `FashionMNIST/raw/`, `MNIST/raw/` or `notMNIST-small/raw/`.
        image_size: Number of pixels along both edges of an image folder's images; None: the files'
            own sizes.
        test_share: The test part's share of each class's images in an image folder without `train`
            and `test`.
        test_seed: Seed of that choice.
        features: A file with rows instead of the images, see `with_features`.

    Raises:
        UserError: The name is unknown, the folder does not exist, or a download or a function from
            outside failed.
        DataError: A file is missing, damaged, or does not match the others.
    """
    if outside.is_named(name):
        data = _load_own(name, data_dir)
    elif name == "image-folder":
        root = required_root(name, data_dir)
        data = load_image_folder(root, image_size=image_size, test_share=test_share, seed=test_seed)
    else:
        check_choice("dataset", name, DATASETS)
        data = _LOADERS[name](name, data_dir)
    return data if features is None else with_features(data, Path(features))


def checksum(name: str, data_dir: Path | None = None, **keys: Any) -> str | None:
    """Checksum of data or features that their name does not identify; None for other data.

    Args:
        name: The data set.
        data_dir: Its folder.
        keys: The other keys of `load_dataset`.

    Raises:
        UserError: the data cannot be read.
    """
    if name not in UNCHECKED_DATASETS and not outside.is_named(name) and "features" not in keys:
        return None
    return _checksum(name, user_root(data_dir), **keys)


@lru_cache(maxsize=8)  # a search makes many runs on the same data
def _checksum(name: str, root: Path | None, **keys: Any) -> str:
    return load_dataset(name, root, **keys).checksum


def _load_published(name: str, data_dir: Path | None) -> ImageData:
    published, files = PUBLISHED[name], published_files(name, data_dir)
    fix = "copy the published file there"
    if files is None:
        files = cached_files(published.folder)
        fix = f"delete it and run again, or {fix}"
    train_x, train_y, test_x, test_y = (
        read_idx(files[idx_name], 3 if "images" in idx_name else 1, sha256=sha256, fix=fix)
        for idx_name, sha256 in zip(IDX_NAMES, published.sha256, strict=True)
    )
    return ImageData(name, train_x, train_y, test_x, test_y, tuple(published.class_names))


def _load_digits(name: str, data_dir: Path | None) -> ImageData:
    """scikit-learn's 1,797 digits of 8x8; every fifth image of each class is a test image."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = torch.from_numpy(digits.images).to(torch.uint8)  # whole numbers from 0 to 16
    y = torch.from_numpy(digits.target).long()
    is_class = y[:, None] == torch.unique(y)
    index_in_class = (is_class.cumsum(0) * is_class).sum(1)  # from 1
    test = index_in_class % _TEST_EVERY == 0
    return ImageData(name, x[~test], y[~test], x[test], y[test])


def _load_glyphs(name: str, data_dir: Path | None) -> ImageData:
    from vcl_radial.data.streams.glyphs import load_glyphs

    return load_glyphs()


def _load_own(name: str, data_dir: Path | None) -> ImageData:
    data = outside.call("dataset", name, user_root(data_dir))
    if not isinstance(data, ImageData):
        raise bad_value(
            "dataset",
            name,
            f"gives {type(data).__name__}, not a vcl_radial.data.streams.ImageData",
        )
    return data


def _load_idx_folder(name: str, data_dir: Path | None) -> ImageData:
    root = required_root(name, data_dir)
    files = [user_files(root, None)[idx_name] for idx_name in IDX_NAMES]
    train_x, train_y, test_x, test_y = (
        read_idx(path, dimensions) for path, dimensions in zip(files, (3, 1, 3, 1), strict=True)
    )
    name = visible(root.resolve().name) or name
    try:
        return ImageData(name, train_x, train_y, test_x, test_y)
    except DataError as error:
        fault = str(error).removeprefix(f"{name}: ")
        for part, path in zip(("train_x", "train_y", "test_x", "test_y"), files, strict=True):
            fault = fault.replace(part, path.name)
        raise DataError(fault, at=files[0].parent) from None


_LOADERS: dict[str, Callable[[str, Path | None], ImageData]] = {
    "fashion-mnist": _load_published,
    "mnist": _load_published,
    "notmnist-small": _load_published,
    CIFAR10: load_cifar10,
    OMNIGLOT: load_omniglot,
    "digits": _load_digits,
    "glyphs": _load_glyphs,
    "idx-folder": _load_idx_folder,
}
DATASETS = (*_LOADERS, "image-folder")
