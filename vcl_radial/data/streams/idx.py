"""A strict reader of IDX files, the format of MNIST and similar data sets.

torchvision reads them too, but neither compressed files nor with messages about faults.

Layout: two zero bytes, a type code (0x08: unsigned bytes), the number of dimensions, each
dimension as a big-endian 32-bit integer, then the values, last dimension fastest.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
from pathlib import Path

import torch
from torch import Tensor

from vcl_radial.files.reading import data_errors, open_data

_UNSIGNED_BYTE = 0x08
_PIECE = 1 << 20
"""Number of bytes to read at a time."""


def read_idx(
    path: Path,
    dimensions: int,
    *,
    sha256: str | None = None,
    fix: str = "copy it again from its source",
) -> Tensor:
    """Read an IDX file of unsigned bytes, gzip-compressed if its name ends in `.gz`.

    Args:
        path: The file.
        dimensions: Required number of dimensions: 1 for labels, 3 for images.
        sha256: Expected checksum of the *uncompressed* bytes, the same for the published and the
            extracted file. None: not checked.
        fix: The fix in the error message for a bad file.

    Returns:
        A uint8 tensor with the shape in the header.

    Raises:
        DataError: The file cannot be read, is truncated, damaged, altered, or of another kind.
    """
    with data_errors(path, fix), open_data(path) as file:
        contents, shape = _read(file, dimensions, sha256)
    values = torch.frombuffer(contents, dtype=torch.uint8, offset=len(contents) - math.prod(shape))
    return values.reshape(shape)


def _read(
    file: io.BufferedReader, dimensions: int, sha256: str | None
) -> tuple[bytearray, tuple[int, ...]]:
    """The bytes of a file and its shape; at most one byte more than in the header is read.

    Raises:
        ValueError: the bytes are wrong; the message states the fault.
    """
    header = 4 + 4 * dimensions
    contents = bytearray(file.read(header))
    if len(contents) < header:
        raise ValueError(f"it has {len(contents)} bytes, and a header {header}")
    magic = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if contents[:4] != magic:
        raise ValueError(
            f"it is no IDX file of unsigned bytes in {dimensions} dimension(s): its magic number "
            f"is {contents[:4].hex()}, not {magic.hex()}"
        )
    shape = struct.unpack(f">{dimensions}I", contents[4:])
    expected = header + math.prod(shape)
    # The extra byte shows that the file is too long; a header may promise more than memory holds.
    while piece := file.read(min(_PIECE, expected + 1 - len(contents))):
        contents += piece
    if len(contents) < expected:
        raise ValueError(f"it ends after {len(contents)} of {expected} bytes")
    if len(contents) > expected:
        raise ValueError(f"it holds more than the expected {expected} bytes")
    if expected == header:
        raise ValueError(f"it holds no values, shape {shape}")
    if sha256 is not None and (sum_ := hashlib.sha256(contents).hexdigest()) != sha256:
        raise ValueError(
            f"it is not the published file: the SHA-256 of its contents is {sum_}, not {sha256}"
        )
    return contents, shape
