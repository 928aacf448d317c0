import gzip
import struct
from pathlib import Path

import torch


def idx_bytes(values: torch.Tensor) -> bytes:
    header = struct.pack(f">BBBB{values.dim()}I", 0, 0, 8, values.dim(), *values.shape)
    return header + values.to(torch.uint8).numpy().tobytes()


def write_idx(path: Path, values: torch.Tensor) -> Path:
    contents = idx_bytes(values)
    path.write_bytes(gzip.compress(contents) if path.suffix == ".gz" else contents)
    return path
