"""The data files of a user: their folders, and whether all files exist.

The files are only read; downloads go to the cache folder (`streams.folders`).
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from vcl_radial.data.class_folders import PARTS, find_classes, find_files, find_parts
from vcl_radial.data.published import PUBLISHED
from vcl_radial.errors import DataError, UserError, bad_value, visible
from vcl_radial.files.reading import data_errors, open_data

DATA_VARIABLE = "VCL_RADIAL_DATA"
IDX_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
FOLDER_DATASETS = ("idx-folder", "image-folder")
"""Data sets that consist of the files in a user's folder."""

IMAGE_KEYS = ("image_size", "test_share", "test_seed")
"""Keys of a stream for reading an image folder."""

CIFAR10 = "cifar10"
OMNIGLOT = "omniglot"
OMNIGLOT_PARTS = ("images_background", "images_evaluation")
UNCHECKED_DATASETS = (*FOLDER_DATASETS, CIFAR10, OMNIGLOT)
"""Data sets whose files have no published checksum here, so that a run has the data's."""

CIFAR10_FOLDER, CIFAR10_ARCHIVE = "cifar-10-batches-bin", "cifar10-jpeg.tar.xz"
CIFAR10_FILES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
"""The official binary files of CIFAR-10, with the test part last, and a copy as JPEG files."""

TEST_SHARE = 0.2
"""Test part's share of each class's images, if a folder has no test part."""

STREAM_KEYS = (*IMAGE_KEYS, "features")
"""Keys of a stream for reading its data."""

BACKBONE_KEYS = ("feature_size", "feature_layers", "feature_pool")
"""Keys of a stream for the network that `features` names."""


@dataclass(frozen=True)
class ImageFiles:
    """The image files of a folder.

    Attributes:
        root: the folder.
        class_names: names of the class folders, sorted as in torchvision's `ImageFolder`.
        train: training files of each class.
        test: test files of each class.
        left_out: files in class folders that are not images by their ending, and images that lie in
            no class folder or twice in one.
        validation: validation files of each class; empty if the folder has no such part.
    """

    root: Path
    class_names: tuple[str, ...]
    train: tuple[tuple[Path, ...], ...]
    test: tuple[tuple[Path, ...], ...]
    left_out: tuple[Path, ...] = ()
    validation: tuple[tuple[Path, ...], ...] = ()

    def __len__(self) -> int:
        return sum(map(len, (*self.train, *self.validation, *self.test)))


def files_checksum(paths: Sequence[Path]) -> str:
    """Checksum of the files' bytes, in this order, independent of their folder and compression.

    Raises:
        DataError: a file does not exist or cannot be read.
    """
    stats = []
    for path in paths:
        with data_errors(path):
            stats.append(path.stat())
    return _checksum(tuple(paths), tuple((s.st_ino, s.st_mtime_ns, s.st_size) for s in stats))


@lru_cache(maxsize=64)  # a command asks for each of its runs, all of a few tables
def _checksum(paths: tuple[Path, ...], stats: tuple[tuple[int, ...], ...]) -> str:
    content = hashlib.sha256()
    for path in paths:
        content.update(path.name.encode() + b"\0")
        # The decompressed bytes, because the header of a .gz file contains the time of compression.
        with data_errors(path), open_data(path) as file:
            while piece := file.read(1 << 20):
                content.update(piece)
    return content.hexdigest()[:16]


def user_root(data_dir: Path | None) -> Path | None:
    """Return the folder that the user named: `data_dir`, else `$VCL_RADIAL_DATA`, else None.

    Raises:
        UserError: The folder was named but does not exist.
    """
    if data_dir is not None:
        root, origin = expanded(Path(data_dir)), "the data folder"
    elif variable := os.environ.get(DATA_VARIABLE):
        root, origin = expanded(Path(variable)), f"the data folder of {DATA_VARIABLE}"
    else:
        return None
    if not root.is_dir():
        raise UserError(f"{origin} is not a folder: create it or name another", at=root)
    return root


def required_root(dataset: str, data_dir: Path | None) -> Path:
    """Return the folder of a data set that is never downloaded, as `user_root` finds it.

    Raises:
        UserError: No folder was named, or it does not exist.
    """
    root = user_root(data_dir)
    if root is None:
        idx = ", ".join(f"{name}.gz" for name in IDX_NAMES)
        if dataset in PUBLISHED:
            contents = f"{PUBLISHED[dataset].folder}/raw with {idx}, which may not be downloaded,"
        elif dataset == CIFAR10:
            contents = f"{CIFAR10_FOLDER}/ or {CIFAR10_ARCHIVE}"
        elif dataset == OMNIGLOT:
            contents = f"omniglot/{OMNIGLOT_PARTS[0]}/ and omniglot/{OMNIGLOT_PARTS[1]}/"
        elif dataset == "idx-folder":
            contents = f"{idx} (or without .gz)"
        else:
            contents = "train/CLASS/*.png and test/CLASS/*.png, or CLASS/*.png (or .jpg, ...)"
        raise bad_value(
            "dataset",
            dataset,
            f"needs a data folder: name the folder that holds {contents} "
            f"with --data-dir, or set {DATA_VARIABLE}",
        )
    return root


def published_files(dataset: str, data_dir: Path | None) -> dict[str, Path] | None:
    """Return the user's files of one of `PUBLISHED`; None: they are downloaded.

    Raises:
        UserError: No folder was named and the data are never downloaded, or it does not exist.
        DataError: Files are missing.
    """
    images = PUBLISHED[dataset]
    root = user_root(data_dir) if images.downloaded else required_root(dataset, data_dir)
    return None if root is None else user_files(root, images.folder)


def cifar10_files(data_dir: Path | None) -> Path:
    """The folder with the official files of CIFAR-10, else the archive of its copy.

    Raises:
        UserError: No folder was named, or it does not exist.
        DataError: Files are missing.
    """
    root = required_root(CIFAR10, data_dir)
    folder = next(
        (f for f in (root / CIFAR10_FOLDER, root) if (f / CIFAR10_FILES[0]).is_file()), None
    )
    if folder is not None:
        if missing := [name for name in CIFAR10_FILES if not (folder / name).is_file()]:
            raise DataError(f"lacks {', '.join(missing)}: copy them there", at=folder)
        return folder
    if not (root / CIFAR10_ARCHIVE).is_file():
        raise DataError(
            f"lacks {CIFAR10_FOLDER}/ and {CIFAR10_ARCHIVE}: copy one of them there, or name "
            "another data folder with --data-dir",
            at=root,
        )
    return root / CIFAR10_ARCHIVE


def omniglot_folder(data_dir: Path | None) -> Path:
    """The folder with the official folders of Omniglot, or with their arrays.

    Raises:
        UserError: No folder was named, or it does not exist.
        DataError: Files are missing.
    """
    root = required_root(OMNIGLOT, data_dir)
    first, second = OMNIGLOT_PARTS
    for folder in (root / "omniglot", root / "omniglot-py", root):
        for names in (OMNIGLOT_PARTS, [f"omniglot_{part}.npz" for part in OMNIGLOT_PARTS]):
            if all((folder / name).exists() for name in names):
                return folder
    raise DataError(
        f"lacks omniglot/{first}/ and omniglot/{second}/: copy them there, or name another data "
        "folder with --data-dir",
        at=root,
    )


def folder_name(dataset: str, data_dir: Path | None) -> str | None:
    """Return the name of the user's data if they define the data set; None if the name does.

    That of CIFAR-10 tells its lossy copy from the official files.

    Raises:
        UserError: No folder was named, or it does not exist.
    """
    if dataset == CIFAR10:
        return "a JPEG copy" if cifar10_files(data_dir).name == CIFAR10_ARCHIVE else None
    if dataset not in FOLDER_DATASETS:
        return None
    return visible(required_root(dataset, data_dir).resolve().name) or None


def expanded(path: Path) -> Path:
    """The path with a home folder for `~`; unchanged if the user is unknown."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def checked_folder(folder: str | Path | None) -> Path | None:
    """The data folder that a caller names; None for the usual folders.

    Raises:
        UserError: the folder does not exist.
    """
    if folder is None:
        return None
    if not expanded(Path(folder)).is_dir():
        raise UserError(f"data_dir = {str(folder)!r}: is not a folder: create it or name another")
    return Path(folder)


def idx_files(folder: Path) -> dict[str, Path]:
    """Return the paths of the files of `IDX_NAMES` that are in a folder.

    A compressed file takes precedence over a plain file, which may be an incomplete extraction.
    """
    paths = ((name, folder / f"{name}{suffix}") for suffix in ("", ".gz") for name in IDX_NAMES)
    return {name: path for name, path in paths if path.is_file()}


def user_files(root: Path, folder: str | None) -> dict[str, Path]:
    """Find the four IDX files in `root/<folder>/raw`, `root/raw` or `root` itself.

    Args:
        root: The user's data folder.
        folder: The data set's folder as torchvision names it; None if the files have none.

    Returns:
        The path of each of `IDX_NAMES`, all from one folder.

    Raises:
        DataError: No folder has all four files; names what is missing in the likeliest one.
    """
    folders = [root / folder / "raw", root / "raw", root] if folder else [root, root / "raw"]
    # A tie (no file at all) names the first, the conventional folder.
    path, files = max(((path, idx_files(path)) for path in folders), key=lambda pair: len(pair[1]))
    if missing := [f"{name}[.gz]" for name in IDX_NAMES if name not in files]:
        raise DataError(
            f"lacks {', '.join(missing)}: copy {'the published files' if folder else 'them'} "
            "there, or name another data folder with --data-dir",
            at=path,
        )
    return files


def user_images(data_dir: Path | None) -> ImageFiles:
    """The `image_files` of the user's folder; the variable's folder may be for other data.

    Raises:
        UserError: No folder was named, or it does not exist.
        DataError: The folder has a wrong layout.
    """
    root = required_root("image-folder", data_dir)
    try:
        return image_files(root)
    except DataError as error:
        if data_dir is not None:
            raise
        raise DataError(
            f"{root} is the folder of {DATA_VARIABLE}; name that of your images with --data-dir",
            at=error.key,
        ) from None


def image_files(root: Path, *, test_share: float = TEST_SHARE, seed: int = 0) -> ImageFiles:
    """Find the image files of `root/{train,test}/CLASS/` or, split by a share, of `root/CLASS/`.

    A part may have another name (`class_folders.part_of`), and `root/val/CLASS/` is the validation
    part. Files in folders inside a class folder count, in the order of their paths; names that
    begin with a dot do not. Without `train` and `test`, round(test_share n) of the n images of each
    class, but at least one and at most n - 1, are its test images. The choice depends only on the
    seed, the class's name and the names of its files.

    Args:
        root: The folder.
        test_share: The test part's share of each class's images.
        seed: Seed of that choice.

    Raises:
        DataError: A class has no image in a part, there are fewer than two classes, the classes are
            not clear, two classes share files, or a folder cannot be read; names it.
    """
    if idx_files(root) or idx_files(root / "raw"):
        raise DataError("holds IDX files: read them with --set stream.dataset=idx-folder", at=root)
    try:
        parts = find_parts(root) or {"": root}
        classes = {part: find_classes(folder) for part, folder in parts.items()}
        by_part, left_out = find_files(root, list(classes.values()))
    except RecursionError:
        raise DataError("its folders are nested too deeply", at=root) from None
    for part, names in classes.items():
        for name in sorted(names.keys() ^ classes.get("train", names).keys()):
            present, absent = (part, "train") if name in names else ("train", part)
            raise DataError(
                f"is a class that {parts[absent]} lacks: add "
                f"{parts[absent] / name} with its images, or take {classes[present][name]} away",
                at=classes[present][name],
            )
    files = dict(zip(classes, by_part, strict=True))
    if "" in files:
        files = {"train": files[""], "test": {}}
        for name, images in files["train"].items():
            if len(images) == 1:
                raise DataError(
                    f"holds one image, {images[0].name}: a class needs two at "
                    "least, one to train on and one to test on",
                    at=classes[""][name],
                )
            chosen = _test_part(images, test_share, f"{seed}/{name}")
            files["train"][name] = [path for path in images if path not in chosen]
            files["test"][name] = [path for path in images if path in chosen]
    train, validation, test = (tuple(map(tuple, files.get(part, {}).values())) for part in PARTS)
    return ImageFiles(root, tuple(files["train"]), train, test, tuple(left_out), validation)


def _test_part(images: Sequence[Path], share: float, seed: str) -> set[Path]:
    count = min(max(1, round(share * len(images))), len(images) - 1)
    return set(random.Random(seed).sample(images, count))
