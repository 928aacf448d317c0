"""The data files of a user: where they lie, and whether all of them are there.

Only paths are looked at and nothing heavy is imported, so that a command can check its data before
it imports PyTorch. The files are only read; downloads go to the cache folder (`streams.folders`).
"""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import BinaryIO, NoReturn

from vcl_radial.errors import DataError, UserError
from vcl_radial.reading import open_data, open_file

DATA_VARIABLE = "VCL_RADIAL_DATA"
IDX_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
PUBLISHED_FOLDERS = {
    "fashion-mnist": "FashionMNIST",
    "mnist": "MNIST",
    "notmnist-small": "notMNIST-small",
}
"""The folder of a published data set; of one that is downloaded also its class in torchvision."""

NEVER_DOWNLOADED = ("notmnist-small",)
"""Published data sets without a licence: they are read where a user has put them."""

FOLDER_DATASETS = ("idx-folder", "image-folder")
"""Data sets that are whatever a user's folder holds."""

IMAGE_KEYS = ("image_size", "test_share", "test_seed")
"""Keys of a stream that say how an image folder is read."""

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""Endings of image files, in small letters: those of torchvision's `ImageFolder`."""

TEST_SHARE = 0.2
"""Of the images of each class, where a folder has no test part."""


STREAM_KEYS = (*IMAGE_KEYS, "features")
"""Keys of a stream that say how its data are read."""


@dataclass(frozen=True)
class ImageFiles:
    """The image files of a folder.

    Attributes:
        root: the folder.
        class_names: names of the class folders, sorted as torchvision's `ImageFolder` does.
        train: the training files of each class.
        test: the test files of each class.
        left_out: files in class folders that are no images by their ending.
    """

    root: Path
    class_names: tuple[str, ...]
    train: tuple[tuple[Path, ...], ...]
    test: tuple[tuple[Path, ...], ...]
    left_out: tuple[Path, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.train)) + sum(map(len, self.test))


def check_data(dataset: str, data_dir: Path | None) -> None:
    """See that the files of a data set are there, without opening one.

    A published data set that is not in the user's folder is looked for nowhere else; without such
    a folder it is downloaded, if it has a licence, so nothing is checked.

    Args:
        dataset: its name; see `vcl_radial.data.streams.load_dataset`.
        data_dir: the folder of `--data-dir`.

    Raises:
        UserError: a folder is wanted and none was named, or it does not exist.
        DataError: files are missing, or folders are not laid out as they have to be.
    """
    if dataset == "idx-folder":
        user_files(required_root(dataset, data_dir), None)
    elif dataset == "image-folder":
        user_images(data_dir)
    elif dataset in PUBLISHED_FOLDERS and (root := published_root(dataset, data_dir)):
        user_files(root, PUBLISHED_FOLDERS[dataset])


def files_checksum(paths: Sequence[Path]) -> str:
    """Of the bytes of files, in this order, whatever folder they lie in and however compressed.

    Raises:
        DataError: one is not there or cannot be read.
    """
    try:
        stats = [path.stat() for path in paths]
        return _checksum(tuple(paths), tuple((s.st_ino, s.st_mtime_ns, s.st_size) for s in stats))
    except FileNotFoundError as error:
        raise DataError(f"{error.filename}: there is no such file; copy it there") from None
    except OSError as error:
        raise DataError(
            f"{error.filename}: cannot be read ({error.strerror}); copy it again"
        ) from None


@lru_cache(maxsize=64)  # a command asks for each of its runs, all of a few tables
def _checksum(paths: tuple[Path, ...], stats: tuple[tuple[int, ...], ...]) -> str:
    content = hashlib.sha256()
    for path in paths:
        content.update(path.name.encode() + b"\0")
        begun = content.copy()
        try:  # decompressed: the header of a .gz file has the time of the compression
            _update(content, open_data(path))
        except (gzip.BadGzipFile, EOFError, zlib.error):  # damaged: whoever reads it says so
            content = begun
            _update(content, open_file(path))
    return content.hexdigest()[:16]


def _update(content: hashlib._Hash, file: BinaryIO) -> None:
    """Add the bytes of a file to a checksum, a piece at a time."""
    with file:
        while piece := file.read(1 << 20):
            content.update(piece)


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
        raise UserError(f"{root}, {origin}, is not a folder: create it or name another")
    return root


def required_root(dataset: str, data_dir: Path | None) -> Path:
    """Return the folder of one of `FOLDER_DATASETS`, as `user_root` finds it.

    Raises:
        UserError: No folder was named, or it does not exist.
    """
    root = user_root(data_dir)
    if root is None:
        contents = (
            f"{', '.join(IDX_NAMES)} (or .gz)"
            if dataset == "idx-folder"
            else "train/CLASS/*.png and test/CLASS/*.png, or CLASS/*.png (or .jpg, ...)"
        )
        raise UserError(
            f'dataset = "{dataset}" needs a data folder: name the folder that holds {contents} '
            f"with --data-dir, or set {DATA_VARIABLE}"
        )
    return root


def published_root(dataset: str, data_dir: Path | None) -> Path | None:
    """Return the user's folder for one of `PUBLISHED_FOLDERS`; None: it is downloaded.

    Raises:
        UserError: No folder was named and the data are never downloaded, or it does not exist.
    """
    root = user_root(data_dir)
    if root is None and dataset in NEVER_DOWNLOADED:
        raise UserError(
            f'dataset = "{dataset}" has no licence, so it is not downloaded: put '
            f"{', '.join(f'{name}.gz' for name in IDX_NAMES)} into "
            f"{PUBLISHED_FOLDERS[dataset]}/raw of a folder, and name that with --data-dir or "
            f"in {DATA_VARIABLE}"
        )
    return root


def folder_name(dataset: str, data_dir: Path | None) -> str | None:
    """Return the name of the folder that is the data set; None of a set with a name of its own.

    Raises:
        UserError: No folder was named, or it does not exist.
    """
    if dataset not in FOLDER_DATASETS:
        return None
    return required_root(dataset, data_dir).resolve().name or None


def expanded(path: Path) -> Path:
    """With a home folder in place of `~`; as it stands where nobody of that name is known."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def find_idx(folder: Path, name: str) -> Path | None:
    """Return the file `name.gz` or else `name` in `folder`; None if neither is there.

    The compressed file comes first because it is the published one: a plain file beside it was
    extracted from it, perhaps not to the end.
    """
    for candidate in (folder / f"{name}.gz", folder / name):
        if candidate.is_file():
            return candidate
    return None


def idx_files(folder: Path) -> dict[str, Path]:
    """Return the paths of those of `IDX_NAMES` that are in a folder."""
    paths = {name: find_idx(folder, name) for name in IDX_NAMES}
    return {name: path for name, path in paths.items() if path is not None}


def user_files(root: Path, folder: str | None) -> dict[str, Path]:
    """Find the four IDX files in `root/<folder>/raw`, `root/raw` or `root` itself.

    Args:
        root: The user's data folder.
        folder: The data set's folder as torchvision names it; None if the files have none.

    Returns:
        The path of each of `IDX_NAMES`, all from one folder.

    Raises:
        DataError: No place holds all four files; names what is missing in the likeliest one.
    """
    places = [root, root / "raw"]
    if folder is not None:
        places = [root / folder / "raw", root / "raw", root]
    found = [idx_files(place) for place in places]
    # A tie (no file at all) points the user to the first, the conventional place.
    best = max(range(len(places)), key=lambda i: len(found[i]))
    missing = [name for name in IDX_NAMES if name not in found[best]]
    if missing:
        files = "the published files" if folder is not None else "them"
        raise DataError(
            f"{places[best]} lacks {', '.join(f'{name}[.gz]' for name in missing)}: "
            f"copy {files} there, or name another data folder with --data-dir"
        )
    return found[best]


def user_images(data_dir: Path | None) -> ImageFiles:
    """The `image_files` of the user's folder; one that a variable names may be for other data.

    Raises:
        UserError: No folder was named, or it does not exist.
        DataError: It is not laid out as it has to be.
    """
    root = required_root("image-folder", data_dir)
    try:
        return image_files(root)
    except DataError as error:
        if data_dir is not None:
            raise
        fault = str(error).partition(": ")[0]
        raise DataError(
            f"{fault}: {root} is the folder of {DATA_VARIABLE}; name that of your images with "
            "--data-dir"
        ) from None


def image_files(root: Path, *, test_share: float = TEST_SHARE, seed: int = 0) -> ImageFiles:
    """Find the image files of `root/{train,test}/CLASS/` or, split by a share, of `root/CLASS/`.

    Files count with folders inside a class folder, in the order of their paths; names that begin
    with a dot do not. Without `train` and `test`, of the n images of each class
    round(test_share n), but one at least and n - 1 at most, are its test images. Which ones depends
    on the seed, the class's name and the names of its files alone.

    Args:
        root: The folder.
        test_share: The share of each class's images that is the test part.
        seed: Of that choice.

    Raises:
        DataError: A class has no image in a part, there are fewer than two classes, or a folder
            cannot be read; names it.
    """
    if idx_files(root) or idx_files(root / "raw"):
        raise DataError(f"{root} holds IDX files: read them with --set stream.dataset=idx-folder")
    parts = [root / part for part in ("train", "test")]
    there = [_folders(part) for part in parts]
    left_out: list[Path] = []
    if not any(there) and not all(part.is_dir() for part in parts):
        train_files, test_files = {}, {}
        for name, images in _images_by_class(root, left_out).items():
            if len(images) == 1:
                raise DataError(
                    f"{root / name} holds one image, {images[0].name}: a class needs two at least, "
                    "one to train on and one to test on"
                )
            chosen = _test_part(images, test_share, f"{seed}/{name}")
            train_files[name] = [path for path in images if path not in chosen]
            test_files[name] = [path for path in images if path in chosen]
    else:
        for part, classes in zip(parts, there, strict=True):
            if not classes and any(there):
                other = "train" if part.name == "test" else "test"
                state = "no class folder in" if part.is_dir() else "no"
                raise DataError(
                    f"{root} has {other}/CLASS folders, but {state} {part.name}: add "
                    f"{part}/CLASS/*.png, or put the class folders into {root} itself, to be split"
                )
        train_files, test_files = (_images_by_class(part, left_out) for part in parts)
        for name in sorted(train_files.keys() ^ test_files.keys()):
            here, lacking = parts if name in train_files else reversed(parts)
            raise DataError(
                f"{here / name} is a class that {lacking} lacks: add {lacking / name} with its "
                f"images, or take {here / name} away"
            )
    train, test = (tuple(map(tuple, files.values())) for files in (train_files, test_files))
    return ImageFiles(root, tuple(train_files), train, test, tuple(left_out))


def _images_by_class(folder: Path, left_out: list[Path]) -> dict[str, list[Path]]:
    """The image files in each class folder of a folder; other files are added to `left_out`."""
    classes = _folders(folder)
    layout = f"put the images of each class into a folder of its own, {folder / 'CLASS'}/*.png"
    if not classes:
        lying = sum(is_image(path) for path in entries(folder))
        state = f"{lying} images, but no class folder" if lying else "no class folder"
        raise DataError(f"{folder} holds {state}: {layout}")
    if len(classes) == 1:
        raise DataError(f"{folder} holds one class only, {classes[0].name}: add another one")
    files: dict[str, list[Path]] = {}
    for path in classes:
        images = files.setdefault(path.name, [])
        for file in _files_below(path):
            (images if is_image(file) else left_out).append(file)
    endings = ", ".join(IMAGE_ENDINGS)
    if not any(files.values()):
        raise DataError(f"{folder} holds no image (a file that ends in {endings}): {layout}")
    for name, images in files.items():
        if not images:
            raise DataError(
                f"{folder / name} holds no image (a file that ends in {endings}): add some, or "
                f"move it out of {folder}"
            )
    return files


def _test_part(images: Sequence[Path], share: float, seed: str) -> set[Path]:
    count = min(max(1, round(share * len(images))), len(images) - 1)
    return set(random.Random(seed).sample(images, count))


def _folders(folder: Path) -> list[Path]:
    """Folders in a folder, by name, but for hidden ones and what archives of macOS leave."""
    if not folder.is_dir():
        return []
    return [p for p in entries(folder) if p.is_dir() and p.name != "__MACOSX"]


def _files_below(folder: Path) -> Iterator[Path]:
    """All files in a folder and in folders inside it, in order, but for hidden ones."""
    for place, folders, names in os.walk(folder, onerror=_not_read, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(names) if not name.startswith("."))


def entries(folder: Path) -> list[Path]:
    """What lies in a folder, by name, but for hidden files and folders.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        _not_read(error)


def _not_read(error: OSError) -> NoReturn:
    raise DataError(
        f"{error.filename} cannot be read ({error.strerror}): change its permissions"
    ) from None


def is_image(path: PurePath) -> bool:
    """Whether a file is one of an image by its ending."""
    return path.suffix.lower() in IMAGE_ENDINGS
