"""Compile the C files of this folder once per machine, and load them.

The library is in the user's cache folder. Its name contains checksums of source, flags, compiler
and processor, and of the library's bytes: a changed or damaged library is built again, and machines
that share a home folder have separate libraries.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from vcl_radial.files import atomic
from vcl_radial.files.cache import cache_root
from vcl_radial.files.reading import checksum

SWITCH = "VCL_RADIAL_NATIVE"
"""Environment variable; with "0" nothing is compiled, and PyTorch does everything."""

_DIGITS = 16
"""Digits of the checksum in the library's name."""

_SOURCES = sorted(Path(__file__).parent.glob("*.c"))
_HEADERS = sorted(Path(__file__).parent.glob("*.h"))
# No -ffast-math: it would flush denormals in the whole process and assume that nothing diverges.
_FLAGS = (
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-ffp-contract=fast",
    "-std=gnu11",
    "-shared",
    "-fPIC",
)


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The compiled library, or None; `unavailable` gives the reason."""
    return _load()[0]


def unavailable() -> str | None:
    """The reason why there is no library; None if there is one."""
    return _load()[1]


@lru_cache(maxsize=1)
def _load() -> tuple[ctypes.CDLL | None, str | None]:
    if os.environ.get(SWITCH) == "0":
        return None, f"{SWITCH} = 0"
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc"))), None)
    if compiler is None:
        return None, "no C compiler (cc, gcc or $CC) on the path"
    try:
        return _declare_types(ctypes.CDLL(str(_build(compiler)))), None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        return None, f"{compiler} cannot compile {_SOURCES[0].parent}: {lines[0]}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{_SOURCES[0].parent} cannot be compiled or loaded: {error}"


def _declare_types(native: ctypes.CDLL) -> ctypes.CDLL:
    """Set the argument types of the library's functions."""
    pointer, count = ctypes.c_void_p, ctypes.c_ssize_t
    native.vcl_draw.argtypes = [pointer] * 6 + [count] * 3
    native.vcl_steps.argtypes = [pointer, count]
    native.vcl_normal.argtypes = [pointer, count, ctypes.c_uint64]
    native.vcl_angles.argtypes = [pointer, count, ctypes.c_double, count, ctypes.c_uint64]
    native.vcl_angle_slope.argtypes = [ctypes.c_double] * 3 + [count]
    native.vcl_angle_slope.restype = ctypes.c_double
    native.vcl_network_train.argtypes = native.vcl_network_scratch.argtypes = [pointer]
    native.vcl_network_train.restype, native.vcl_network_scratch.restype = None, count
    for function in (native.vcl_draw, native.vcl_steps, native.vcl_normal, native.vcl_angles):
        function.restype = None
    return native


def _build(compiler: str) -> Path:
    """The path of the library, which is compiled if it is missing or damaged.

    Raises:
        OSError: The library cannot be written, or the folder belongs to another user.
    """
    name = f"step-{_fingerprint(compiler)}"
    folder = cache_root()
    folder.mkdir(parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(
            f"{folder} belongs to another user; set XDG_CACHE_HOME to a folder of yours"
        )
    for path in folder.glob(f"{name}-*.so"):
        # A damaged library would end the process, or compute wrong numbers.
        with suppress(OSError):
            if path.stem == f"{name}-{checksum(path)[:_DIGITS]}" and not path.is_symlink():
                return path
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / f"{name}.so"
        command = [compiler, *_FLAGS, "-o", str(output), *map(str, _SOURCES), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        content = output.read_bytes()
    path = folder / f"{name}-{hashlib.sha256(content).hexdigest()[:_DIGITS]}.so"
    atomic.write(path, content)
    return path


def _fingerprint(compiler: str) -> str:
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, timeout=60)
    parts = [path.read_bytes() for path in (*_SOURCES, *_HEADERS)]
    parts += [" ".join(_FLAGS).encode(), version.stdout, _processor().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _processor() -> str:
    """The description of the processor that -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    kinds = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(kinds)}))
