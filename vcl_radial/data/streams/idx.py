"""IDX files, the format in which MNIST and its kin are published, read strictly.

Layout: two zero bytes, a type code (0x08: unsigned bytes), the number of dimensions, each
dimension as a big-endian 32-bit integer, then the values, last dimension fastest.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from io import BufferedIOBase
from pathlib import Path

import torch
from torch import Tensor

from vcl_radial.errors import DataError

_UNSIGNED_BYTE = 0x08
_CHUNK = 1 << 20


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
    contents, complete = _read_bytes(path, mend)
    header = 4 + 4 * dimensions
    if not complete:
        raise DataError(f"{path} is truncated ({_cut_off(contents, header)}): {mend}")
    if len(contents) < header:
        raise DataError(
            f"{path} is truncated (expected at least {header} bytes, found {len(contents)}): {mend}"
        )
    expected_magic = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if contents[:4] != expected_magic:
        raise DataError(
            f"{path} is not an IDX file of unsigned bytes in {dimensions} dimension(s) "
            f"(magic number {contents[:4].hex()}, expected {expected_magic.hex()}): {mend}"
        )
    shape = struct.unpack(f">{dimensions}I", contents[4:header])
    expected = header + math.prod(shape)
    if len(contents) != expected:
        state = "truncated" if len(contents) < expected else "damaged"
        raise DataError(
            f"{path} is {state} (expected {expected} bytes, found {len(contents)}): {mend}"
        )
    if expected == header:
        raise DataError(f"{path} holds no values (shape {shape}): {mend}")
    if sha256 is not None and (found := hashlib.sha256(contents).hexdigest()) != sha256:
        raise DataError(
            f"{path} is not the published file (SHA-256 of its contents {found}, "
            f"expected {sha256}): {mend}"
        )
    return torch.frombuffer(contents, dtype=torch.uint8, offset=header).reshape(shape)


def _read_bytes(path: Path, mend: str) -> tuple[bytearray, bool]:
    """Return the uncompressed bytes, and whether the stream came to its proper end."""
    contents = bytearray()
    try:
        with _open(path) as file:
            # `read` would lose all of a chunk whose end is missing.
            while chunk := file.read1(_CHUNK):
                contents += chunk
    except EOFError:  # what was read says how much is missing
        return contents, False
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged ({error}): {mend}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): {mend}") from error
    return contents, True


def _cut_off(contents: bytearray, header: int) -> str:
    """How much of a gzip stream without its end could be read."""
    whole = ""
    if len(contents) >= header:
        shape = struct.unpack(f">{header // 4 - 1}I", contents[4:header])
        whole = f" of {header + math.prod(shape)}"
    return f"its gzip stream ends early, after {len(contents)}{whole} bytes of contents"


def _open(path: Path) -> BufferedIOBase:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
