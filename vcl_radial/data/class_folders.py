"""Class folders of images: find the parts of a data set and the files of each class.

Links are followed. A real folder is entered once, and a real file belongs to one class of one part,
so that no link can put test images among the training images.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final, NoReturn
from unicodedata import normalize

from vcl_radial.errors import DataError, visible

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""Endings of image files, in lower case, as in torchvision's `ImageFolder`."""

_WORDS: Final = "(?:data|dataset|files|ima?ge?s?|pictures|seg|set)?"
_PART: Final = re.compile(
    rf"{_WORDS}(?:(?P<train>train(?:ing)?)|(?P<validation>val(?:id(?:ation)?)?|dev)"
    rf"|(?P<test>test(?:ing)?)){_WORDS}"
)
"""Name of a part in lower case without signs and digits: `seg_train`, `Training Set`."""

PARTS: Final = ("train", "validation", "test")
"""Parts of a data set."""

_REST: Final = "__MACOSX"
"""Folder that an archive of macOS contains in addition to its contents."""

Classes = dict[str, Path]
"""Class folders by the names of their classes."""

Files = dict[str, list[Path]]
"""Image files by the names of their classes."""

_Owners = dict[tuple[int, int], Path]
"""Class folders of real files and folders, by device and inode number."""


def part_of(name: str) -> str | None:
    """Return "train", "validation" or "test" if a folder's name names such a part, else None."""
    match = _PART.fullmatch(re.sub(r"[\W\d_]", "", name.casefold()))
    return match and match.lastgroup


def find_parts(root: Path) -> dict[str, Path]:
    """Find the parts of a data set in its folder, or in the only folder in it.

    Returns:
        The folder of each part; empty if the class folders lie in the folder itself.

    Raises:
        DataError: the part "train" or "test" is missing, or a part exists twice; names it.
    """
    folders = _folders(root)
    paths_of: dict[str, list[Path]] = {}
    for path in folders:
        if (part := part_of(path.name)) is not None:
            paths_of.setdefault(part, []).append(path)
    filled = {part for part, paths in paths_of.items() if any(map(_folders, paths))}
    if not filled and len(paths_of) < 2:
        return find_parts(folders[0]) if len(folders) == 1 else {}
    for part, paths in paths_of.items():
        if len(paths) > 1:
            raise DataError(
                f"has the name of a {part} part, as {paths[1]} has: merge them, or rename one",
                at=paths[0],
            )
    for part in ("train", "test"):
        if filled and part not in filled:
            full = next(path for name in paths_of if name in filled for path in paths_of[name])
            path = paths_of.get(part, [root / part])[0]
            state = f"no class folder in {path.name}" if part in paths_of else f"no {part}"
            raise DataError(
                f"has {full.name}/CLASS folders, but {state}: add {path}/CLASS/*.png, or "
                f"put the class folders into {root} itself, to be split",
                at=root,
            )
    return {part: _innermost(paths_of[part][0], part) for part in PARTS if part in paths_of}


def _innermost(folder: Path, part: str) -> Path:
    """The innermost of nested folders of a part, each the only one in the folder above."""
    folders = _folders(folder)
    if len(folders) == 1 and part_of(folders[0].name) == part:
        return _innermost(folders[0], part)
    return folder


def find_classes(folder: Path) -> Classes:
    """Find the class folders in a folder, by their names in one Unicode form.

    Raises:
        DataError: there are fewer than two, or a name is not in UTF-8 or exists in two forms.
    """
    folders = _folders(folder)
    if not folders:
        images = sum(map(is_image, entries(folder)))
        state = f"{images} images, but no class folder" if images else "no class folder"
        raise DataError(f"holds {state}: {_layout(folder)}", at=folder)
    if len(folders) == 1:
        raise DataError(f"holds one class only, {folders[0].name}: add another one", at=folder)
    classes: Classes = {}
    for path in folders:
        if path.name.encode(errors="ignore").decode() != path.name:
            raise DataError("this name is not in UTF-8: rename the folder", at=visible(str(path)))
        if (twin := classes.setdefault(_composed(path.name), path)) != path:
            raise DataError(
                f"holds two folders {path.name} in two Unicode forms, {twin.name!a} "
                f"and {path.name!a}: merge them",
                at=folder,
            )
    return dict(sorted(classes.items()))


def find_files(root: Path, parts: Sequence[Classes]) -> tuple[list[Files], list[Path]]:
    """Find the files in class folders and in folders inside them, without hidden ones.

    Args:
        root: folder of the data set.
        parts: class folders of each part.

    Returns:
        The images of each class of each part, and the files that are left out: files in a class
        that are not images by their ending, images outside of all classes, and second copies of an
        image in a class.

    Raises:
        DataError: a class has no image, contains parts or classes, or shares a folder or file with
            another one; or a link is broken; names it.
    """
    owners: _Owners = {}
    for path in (path for classes in parts for path in classes.values()):
        _is_new(path, path, owners)
    left_out = list(_images_outside(root, {path for part in parts for path in part.values()}))
    files: list[Files] = []
    for classes in parts:
        files.append({})
        groups = [set(PARTS), set(map(_kind, classes))]
        for name, folder in classes.items():
            images = files[-1][name] = []
            folders: list[str] | None = None
            for names, paths in _walk(folder, owners):
                for path in paths:
                    new = is_image(path) and _is_new(path, folder, owners)
                    (images if new else left_out).append(path)
                if folders is None and (images or len(names) != 1):
                    folders = names[:]
            _check_no_classes(root, folder, folders or [], groups)
        _check_filled(classes, files[-1])
    return files, left_out


def _check_no_classes(root: Path, folder: Path, folders: list[str], groups: list[set[str]]) -> None:
    """Raise if folders in a class are named like parts, classes or folders in other classes.

    Args:
        root: folder of the data set.
        folder: folder of the class.
        folders: names of the folders in it.
        groups: such names of earlier classes; those of this class are added.
    """
    names = set(map(_kind, folders))
    if any(len(names & group) > 1 for group in groups):
        raise DataError(
            f"holds the folders {', '.join(folders[:3])}, as another one does: name parts "
            f"{root / 'train'} and {root / 'test'}, and put the images of a class into its own "
            "folder, without folders of the same names inside",
            at=folder,
        )
    if len(names) > 1:
        groups.append(names)


def _check_filled(classes: Classes, files: Files) -> None:
    endings = f"no image (a file that ends in {', '.join(IMAGE_ENDINGS)})"
    if not any(files.values()):
        folder = next(iter(classes.values())).parent
        raise DataError(f"holds {endings}: {_layout(folder)}", at=folder)
    for name, folder in classes.items():
        if not files[name]:
            raise DataError(
                f"holds {endings}: add some, or move it out of {folder.parent}", at=folder
            )


def _walk(folder: Path, owners: _Owners) -> Iterator[tuple[list[str], list[Path]]]:
    """Yield the folder names and files of a class folder and of all folders inside it."""
    for root, folders, files in os.walk(folder, onerror=_not_read, followlinks=True):
        inner = [path for name in _visible(folders) if not _leads_up(path := Path(root, name))]
        folders[:] = [path.name for path in inner if _is_new(path, folder, owners)]
        paths = [Path(root, name) for name in _visible(files)]
        for path in paths:
            if not is_image(path) and path.is_symlink():
                _status(path)  # a broken link may have been a folder
        yield folders, paths


def _leads_up(path: Path) -> bool:
    """Whether a folder is a link to a folder above it."""
    if not path.is_symlink():
        return False
    parent, target = (Path(os.path.realpath(p)) for p in (path.parent, path))
    return parent.is_relative_to(target)


def _is_new(path: Path, folder: Path, owners: _Owners) -> bool:
    """Whether a file or folder in a class folder appears there for the first time.

    Raises:
        DataError: it belongs to another class folder too, or is a broken link.
    """
    status = _status(path)
    key = status.st_dev, status.st_ino
    new = key not in owners
    if (owner := owners.setdefault(key, folder)) != folder:
        raise DataError(
            f"belongs to {owner} too, by a link: an image has one class and lies in one "
            "part; delete one of the two",
            at=path,
        )
    return new


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror}): delete it if it is a link", at=path
        ) from None


def _images_outside(root: Path, classes: Collection[Path]) -> Iterator[Path]:
    """Images in a folder that lie in none of the class folders."""
    for folder, folders, files in os.walk(root, onerror=_not_read):
        folders[:] = [n for n in _visible(folders) if Path(folder, n) not in classes]
        yield from (path for name in _visible(files) if is_image(path := Path(folder, name)))


def _folders(folder: Path) -> list[Path]:
    """Folders in a folder, by name, without hidden ones and leftovers of macOS archives."""
    if not folder.is_dir():
        return []
    paths = [path for path in entries(folder) if path.name != _REST]
    for path in paths:
        if path.is_symlink():
            _status(path)  # a broken link may have been a class
    return [path for path in paths if path.is_dir()]


def entries(folder: Path) -> list[Path]:
    """The entries of a folder, by name, without hidden ones.

    Raises:
        DataError: the folder cannot be read.
    """
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        _not_read(error)


def _not_read(error: OSError) -> NoReturn:
    raise DataError(
        f"cannot be read ({error.strerror}): change its permissions", at=error.filename
    ) from None


def is_image(path: PurePath) -> bool:
    """Whether a file is an image by its ending."""
    return path.suffix.lower() in IMAGE_ENDINGS


def _visible(names: Sequence[str]) -> list[str]:
    visible_names = (name for name in names if not name.startswith(".") and name != _REST)
    return sorted(visible_names, key=lambda name: (_composed(name), name))


def _composed(name: str) -> str:
    """A name in the Unicode form of most systems; macOS uses another one."""
    return normalize("NFC", name)


def _kind(name: str) -> str:
    return part_of(name) or _composed(name).casefold()


def _layout(folder: Path) -> str:
    return f"put the images of each class into a folder of its own, {folder / 'CLASS'}/*.png"
