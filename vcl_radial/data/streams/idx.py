"""IDX files, the format in which MNIST and its kin are published, read strictly.

torchvision reads them too, but neither compressed ones nor with a word about what is wrong.

Layout: two zero bytes, a type code (0x08: unsigned bytes), the number of dimensions, each
dimension as a big-endian 32-bit integer, then the values, last dimension fastest.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from pathlib import Path

import torch
from torch import Tensor

from vcl_radial.errors import DataError

_UNSIGNED_BYTE = 0x08


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
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            contents = bytearray(file.read())
    except EOFError:
        raise DataError(f"{path} is truncated (its gzip stream ends early): {mend}") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged ({error}): {mend}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): {mend}") from error
    if fault := _fault(contents, dimensions, sha256):
        raise DataError(f"{path} {fault}: {mend}")
    header = 4 + 4 * dimensions
    values = torch.frombuffer(contents, dtype=torch.uint8, offset=header)
    return values.reshape(struct.unpack(f">{dimensions}I", contents[4:header]))


def _fault(contents: bytearray, dimensions: int, sha256: str | None) -> str | None:
    """What is wrong with the bytes of a file, or None."""
    found, header = len(contents), 4 + 4 * dimensions
    if found < header:
        return f"is truncated (expected at least {header} bytes, found {found})"
    magic = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if contents[:4] != magic:
        return (
            f"is not an IDX file of unsigned bytes in {dimensions} dimension(s) "
            f"(magic number {contents[:4].hex()}, expected {magic.hex()})"
        )
    shape = struct.unpack(f">{dimensions}I", contents[4:header])
    expected = header + math.prod(shape)
    if found != expected:
        state = "truncated" if found < expected else "damaged"
        return f"is {state} (expected {expected} bytes, found {found})"
    if expected == header:
        return f"holds no values (shape {shape})"
    if sha256 is not None and (sum_ := hashlib.sha256(contents).hexdigest()) != sha256:
        return f"is not the published file (SHA-256 of its contents {sum_}, expected {sha256})"
    return None
