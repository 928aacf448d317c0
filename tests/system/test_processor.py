"""What a process does with the memory that it frees."""

import subprocess
import sys

import pytest

_MEASURED = """
import ctypes
import torch
from vcl_radial.system import processor

class Info(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "b", "c", "d", "mapped", "f", "g", "used", "free", "j")
    ]

libc = ctypes.CDLL(None)
if not hasattr(libc, "mallinfo2"):
    print("no glibc")
    raise SystemExit
libc.mallinfo2.restype = Info
if {prepare}:
    processor.prepare(threads=1)
kept = []
for _ in range(3):
    activations = [torch.ones(2**22) for _ in range(8)]
    inside = libc.mallinfo2()
    del activations
    kept.append(libc.mallinfo2().free)
print(inside.mapped, min(kept))
"""


def _measured(prepare: bool) -> tuple[int, int]:
    text = subprocess.run(
        [sys.executable, "-c", _MEASURED.format(prepare=prepare)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if text.startswith("no glibc"):
        pytest.skip("the C library is not glibc 2.33 or later")
    mapped, kept = text.split()
    return int(mapped), int(kept)


@pytest.mark.processes
def test_a_prepared_process_keeps_the_activations_that_it_frees():
    size = 8 * 4 * 2**22
    mapped, kept = _measured(prepare=True)
    assert mapped < size <= kept
    # Without it, glibc gives them back: else there would be nothing to do.
    mapped, kept = _measured(prepare=False)
    assert kept < size
