"""RetinaMNIST of MedMNIST v2 (Yang et al. 2023), an `.npz` file with its own split."""

from __future__ import annotations

import hashlib
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data.fundus.faults import Fault, OnFault, Tell, settle, tell_user
from vcl_radial.data.fundus.table import GRADES, Part, Photograph, Photographs
from vcl_radial.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

RETINAMNIST_NOTICE: Final = "RetinaMNIST of MedMNIST v2 (from the DeepDRiD challenge), CC BY 4.0"

_PARTS: Final[tuple[tuple[str, Part], ...]] = (
    ("train", "train"),
    ("val", "validation"),
    ("test", "test"),
)


class ArrayReader:
    """Gives the pictures of arrays `[N, H, W, 3]` in memory.

    Args:
        origin: the file that they come from.
        images: by the name of a row.
        digest: of the file.
    """

    def __init__(self, origin: Path, images: dict[str, NDArray[np.uint8]], digest: str) -> None:
        self.origin = str(origin.resolve())
        self._images, self._digest = images, digest

    def read(self, photograph: Photograph, size: int) -> Image.Image:
        """The picture."""
        from PIL import Image

        return Image.fromarray(self._images[photograph.name])

    def version(self, photograph: Photograph) -> str:
        """The file's checksum."""
        return self._digest


def read_medmnist(path: Path, on_fault: OnFault = "stop", tell: Tell = tell_user) -> Photographs:
    """Read `retinamnist.npz`, of any size of its pictures. Who is on them is not known.

    Raises:
        DataError: the file is missing, damaged or another one.
    """
    arrays, digest = _arrays(path)
    rows: list[Photograph] = []
    images: dict[str, NDArray[np.uint8]] = {}
    faults: list[Fault] = []
    for key, part in _PARTS:
        pictures, grades = arrays[f"{key}_images"], arrays[f"{key}_labels"].reshape(-1)
        if pictures.dtype != np.uint8 or pictures.ndim != 4 or pictures.shape[3] != 3:
            raise DataError(
                f"{path}: {key}_images is {pictures.dtype} {list(pictures.shape)}, "
                "not uint8 [N, H, W, 3]; give it RetinaMNIST's file"
            )
        if len(pictures) != len(grades):
            raise DataError(
                f"{path}: has {len(grades)} labels for {len(pictures)} {key} images; fetch it anew"
            )
        for number, (picture, grade) in enumerate(zip(pictures, grades.tolist(), strict=True)):
            name = f"{part}_{number:04}"
            if grade not in GRADES:
                faults.append(Fault(name, "graded outside 0 to 4", str(grade)))
                continue
            images[name] = picture
            rows.append(
                Photograph(name, name, "unknown", int(grade), "retinamnist", part, path=path)
            )
    settle(str(path), faults, len(rows) + len(faults), on_fault, tell)
    return Photographs(
        name="retinamnist",
        rows=tuple(rows),
        reader=ArrayReader(path, images, digest),
        notice=RETINAMNIST_NOTICE,
        patients_known=False,
        faults=tuple(faults),
    )


def _arrays(path: Path) -> tuple[dict[str, NDArray[Any]], str]:
    needed = [f"{key}_{kind}" for key, _ in _PARTS for kind in ("images", "labels")]
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        with np.load(path, allow_pickle=False) as file:
            lacking = [name for name in needed if name not in file]
            if lacking:
                raise DataError(f"{path}: lacks {', '.join(lacking)}; give it RetinaMNIST's file")
            return {name: file[name] for name in needed}, digest
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; put RetinaMNIST's file there") from None
    except (
        OSError,
        ValueError,
        EOFError,
        AttributeError,
        RuntimeError,
        tokenize.TokenError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:  # what numpy and zipfile raise where bytes are not what they should be
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: is damaged or no .npz file ({words}); fetch it anew") from None
