"""IDX files, the format in which MNIST and its kin are published, read strictly.

torchvision reads them too, but neither compressed ones nor with a word about what is wrong.

Layout: two zero bytes, a type code (0x08: unsigned bytes), the number of dimensions, each
dimension as a big-endian 32-bit integer, then the values, last dimension fastest.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import struct
import zlib
from pathlib import Path

import torch
from torch import Tensor

from vcl_radial.errors import DataError
from vcl_radial.files.reading import open_data

_UNSIGNED_BYTE = 0x08
_PIECE = 1 << 20
"""Bytes that are read at a time."""


def read_idx(
    path: Path,
    dimensions: int,
    *,
    sha256: str | None = None,
    mend: str = "copy it again from its source",
) -> Tensor:
    """Read an IDX file of unsigned bytes, gzip-compressed if its name ends in `.gz`.

    Args:
        path: The file.
        dimensions: How many dimensions it must have: 1 for labels, 3 for images.
        sha256: Expected checksum of the *uncompressed* bytes, so that one constant serves the
            published and the extracted file. None: not checked.
        mend: What the user is told to do about a bad file.

    Returns:
        A uint8 tensor of the shape that the header gives.

    Raises:
        DataError: The file cannot be read, is truncated, damaged, altered, or of another kind.
    """
    try:
        with open_data(path) as file:
            contents, shape = _read(file, dimensions, sha256)
    except ValueError as fault:
        raise DataError(f"{fault}: {mend}", at=path) from None
    except EOFError:
        raise DataError(f"is truncated (its gzip stream ends early): {mend}", at=path) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"is damaged ({error}): {mend}", at=path) from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}): {mend}", at=path) from error
    values = torch.frombuffer(contents, dtype=torch.uint8, offset=len(contents) - math.prod(shape))
    return values.reshape(shape)


def _read(
    file: io.BufferedReader, dimensions: int, sha256: str | None
) -> tuple[bytearray, tuple[int, ...]]:
    """The bytes of a file and its shape; no more is read than the header promises.

    Raises:
        ValueError: says what is wrong with the bytes.
    """
    header = 4 + 4 * dimensions
    contents = bytearray(file.read(header))
    if len(contents) < header:
        raise ValueError(f"is truncated (expected at least {header} bytes, found {len(contents)})")
    magic = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if contents[:4] != magic:
        raise ValueError(
            f"is not an IDX file of unsigned bytes in {dimensions} dimension(s) "
            f"(magic number {contents[:4].hex()}, expected {magic.hex()})"
        )
    shape = struct.unpack(f">{dimensions}I", contents[4:])
    expected = header + math.prod(shape)
    # One byte more shows that there are more; a header may promise more than memory holds.
    while piece := file.read(min(_PIECE, expected + 1 - len(contents))):
        contents += piece
    if len(contents) < expected:
        raise ValueError(f"is truncated (expected {expected} bytes, found {len(contents)})")
    if len(contents) > expected:
        raise ValueError(f"is damaged (it holds more than the expected {expected} bytes)")
    if expected == header:
        raise ValueError(f"holds no values (shape {shape})")
    if sha256 is not None and (sum_ := hashlib.sha256(contents).hexdigest()) != sha256:
        raise ValueError(
            f"is not the published file (SHA-256 of its contents {sum_}, expected {sha256})"
        )
    return contents, shape
