"""Class folders of images: which folders are parts of a data set, and the files of each class.

Links are followed. A real folder is entered once, and a real file belongs to one class of one part,
so that no link puts test images among the training images.
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
"""Endings of image files, in small letters: those of torchvision's `ImageFolder`."""

_WORDS: Final = "(?:data|dataset|files|ima?ge?s?|pictures|seg|set)?"
_PART: Final = re.compile(
    rf"{_WORDS}(?:(?P<train>train(?:ing)?)|(?P<validation>val(?:id(?:ation)?)?|dev)"
    rf"|(?P<test>test(?:ing)?)){_WORDS}"
)
"""The name of a part in small letters without signs and digits: `seg_train`, `Training Set`."""

PARTS: Final = ("train", "validation", "test")
"""The parts that a data set may have."""

_REST: Final = "__MACOSX"
"""The folder that an archive of macOS has beside its contents."""

Classes = dict[str, Path]
"""Class folders by the names of their classes."""

Files = dict[str, list[Path]]
"""Image files by the names of their classes."""

_Owners = dict[tuple[int, int], Path]
"""The class folder of every real file and folder, by its device and number there."""


def part_of(name: str) -> str | None:
    """Return "train", "validation" or "test" where a folder's name is one of such a part."""
    match = _PART.fullmatch(re.sub(r"[\W\d_]", "", name.casefold()))
    return match and match.lastgroup


def find_parts(root: Path) -> dict[str, Path]:
    """Find the parts of a data set in its folder, or in a folder that lies there alone.

    Returns:
        The folder of each part; empty if the class folders lie in the folder itself.

    Raises:
        DataError: the part "train" or "test" lacks, or one is there twice; names it.
    """
    folders = _folders(root)
    named: dict[str, list[Path]] = {}
    for path in folders:
        if (part := part_of(path.name)) is not None:
            named.setdefault(part, []).append(path)
    filled = {part for part, paths in named.items() if any(map(_folders, paths))}
    if not filled and len(named) < 2:
        return find_parts(folders[0]) if len(folders) == 1 else {}
    for part, paths in named.items():
        if len(paths) > 1:
            raise DataError(
                f"has the name of a {part} part, as {paths[1]} has: merge them, or rename one",
                at=paths[0],
            )
    for part in ("train", "test"):
        if filled and part not in filled:
            there = next(path for other in named if other in filled for path in named[other])
            path = named.get(part, [root / part])[0]
            state = f"no class folder in {path.name}" if part in named else f"no {part}"
            raise DataError(
                f"has {there.name}/CLASS folders, but {state}: add {path}/CLASS/*.png, or "
                f"put the class folders into {root} itself, to be split",
                at=root,
            )
    return {part: _innermost(named[part][0], part) for part in PARTS if part in named}


def _innermost(folder: Path, part: str) -> Path:
    """The last of a part's folders of which each lies alone in the one before."""
    inside = _folders(folder)
    if len(inside) == 1 and part_of(inside[0].name) == part:
        return _innermost(inside[0], part)
    return folder


def find_classes(folder: Path) -> Classes:
    """Find the class folders in a folder, by their names in one Unicode form.

    Raises:
        DataError: there are fewer than two, or a name is not in UTF-8 or there in two forms.
    """
    folders = _folders(folder)
    if not folders:
        lying = sum(map(is_image, entries(folder)))
        state = f"{lying} images, but no class folder" if lying else "no class folder"
        raise DataError(f"holds {state}: {_layout(folder)}", at=folder)
    if len(folders) == 1:
        raise DataError(f"holds one class only, {folders[0].name}: add another one", at=folder)
    classes: Classes = {}
    for path in folders:
        if path.name.encode(errors="ignore").decode() != path.name:
            raise DataError("this name is not in UTF-8: rename the folder", at=visible(str(path)))
        if (other := classes.setdefault(_composed(path.name), path)) != path:
            raise DataError(
                f"holds two folders {path.name} in two Unicode forms, {other.name!a} "
                f"and {path.name!a}: merge them",
                at=folder,
            )
    return dict(sorted(classes.items()))


def find_files(root: Path, parts: Sequence[Classes]) -> tuple[list[Files], list[Path]]:
    """Find the files in class folders and in folders inside them, but for hidden ones.

    Args:
        root: the folder of the data set.
        parts: the class folders of each part.

    Returns:
        The images of each class of each part, and the files that are left out: those of a class
        that are no images by their ending, and images that lie outside of all classes or are in
        one class twice.

    Raises:
        DataError: a class has no image, holds parts or classes, or shares a folder or file with
            another one; or a link leads nowhere; names it.
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
            for inside, paths in _walk(folder, owners):
                for path in paths:
                    new = is_image(path) and _is_new(path, folder, owners)
                    (images if new else left_out).append(path)
                if folders is None and (images or len(inside) != 1):
                    folders = inside[:]
            _check_no_classes(root, folder, folders or [], groups)
        _check_filled(classes, files[-1])
    return files, left_out


def _check_no_classes(root: Path, folder: Path, inside: list[str], groups: list[set[str]]) -> None:
    """Raise if the folders inside a class have the names of parts, of classes or of those inside.

    Args:
        root: the folder of the data set.
        folder: that of the class.
        inside: the names of the folders in it.
        groups: such names that were met before; this class's are added.
    """
    names = set(map(_kind, inside))
    if any(len(names & group) > 1 for group in groups):
        raise DataError(
            f"holds the folders {', '.join(inside[:3])}, as another one does: name parts "
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
    """Names of folders, and files, in a class folder and in each folder inside it, in order."""
    for place, folders, files in os.walk(folder, onerror=_not_read, followlinks=True):
        inside = [path for name in _shown(folders) if not _leads_up(path := Path(place, name))]
        folders[:] = [path.name for path in inside if _is_new(path, folder, owners)]
        paths = [Path(place, name) for name in _shown(files)]
        for path in paths:
            if not is_image(path) and path.is_symlink():
                _status(path)  # a link that leads nowhere may have been a folder
        yield folders, paths


def _leads_up(path: Path) -> bool:
    """Whether a folder is a link to one above it."""
    if not path.is_symlink():
        return False
    place, target = (Path(os.path.realpath(p)) for p in (path.parent, path))
    return place.is_relative_to(target)


def _is_new(path: Path, folder: Path, owners: _Owners) -> bool:
    """Whether a file or folder in a class folder is met there for the first time.

    Raises:
        DataError: it belongs to another class folder too, or is a link that leads nowhere.
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
    for place, folders, files in os.walk(root, onerror=_not_read):
        folders[:] = [n for n in _shown(folders) if Path(place, n) not in classes]
        yield from (path for name in _shown(files) if is_image(path := Path(place, name)))


def _folders(folder: Path) -> list[Path]:
    """Folders in a folder, by name, but for hidden ones and what archives of macOS leave."""
    if not folder.is_dir():
        return []
    paths = [path for path in entries(folder) if path.name != _REST]
    for path in paths:
        if path.is_symlink():
            _status(path)  # a link that leads nowhere may have been a class
    return [path for path in paths if path.is_dir()]


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
        f"cannot be read ({error.strerror}): change its permissions", at=error.filename
    ) from None


def is_image(path: PurePath) -> bool:
    """Whether a file is one of an image by its ending."""
    return path.suffix.lower() in IMAGE_ENDINGS


def _shown(names: Sequence[str]) -> list[str]:
    shown = (name for name in names if not name.startswith(".") and name != _REST)
    return sorted(shown, key=lambda name: (_composed(name), name))


def _composed(name: str) -> str:
    """A name in the Unicode form in which most systems write it; macOS has another one."""
    return normalize("NFC", name)


def _kind(name: str) -> str:
    return part_of(name) or _composed(name).casefold()


def _layout(folder: Path) -> str:
    return f"put the images of each class into a folder of its own, {folder / 'CLASS'}/*.png"
