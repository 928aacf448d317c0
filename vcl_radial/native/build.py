"""Compiling the C files of this folder once per machine, and loading them.

The library lies in the user's cache folder, under a name that stands for source, flags, compiler
and processor: a changed one is built anew, and machines that share a home folder do not meet.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from vcl_radial.cache import cache_root

SWITCH = "VCL_RADIAL_NATIVE"
"""Environment variable; with "0" nothing is compiled, and PyTorch does everything."""

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
    """The compiled library; None where `unavailable` says why."""
    return _loaded()[0]


def unavailable() -> str | None:
    """Why there is no library, in words; None where there is one."""
    return _loaded()[1]


@lru_cache(maxsize=1)
def _loaded() -> tuple[ctypes.CDLL | None, str | None]:
    if os.environ.get(SWITCH) == "0":
        return None, f"{SWITCH} = 0"
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc"))), None)
    if compiler is None:
        return None, "no C compiler (cc, gcc or $CC) on the path"
    try:
        return _declared(ctypes.CDLL(str(_built(compiler)))), None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        return None, f"{compiler} cannot compile {_SOURCES[0].parent}: {said[0]}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{_SOURCES[0].parent} cannot be compiled or loaded: {error}"


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    """With the types of the functions' arguments."""
    pointer, count = ctypes.c_void_p, ctypes.c_ssize_t
    loaded.vcl_draw.argtypes = [pointer] * 6 + [count] * 3
    loaded.vcl_steps.argtypes = [pointer, count]
    loaded.vcl_normal.argtypes = [pointer, count, ctypes.c_uint64]
    loaded.vcl_angles.argtypes = [pointer, count, ctypes.c_double, count, ctypes.c_uint64]
    loaded.vcl_angle_slope.argtypes = [ctypes.c_double] * 3 + [count]
    loaded.vcl_angle_slope.restype = ctypes.c_double
    loaded.vcl_network_train.argtypes = loaded.vcl_network_scratch.argtypes = [pointer]
    loaded.vcl_network_train.restype, loaded.vcl_network_scratch.restype = None, count
    for function in (loaded.vcl_draw, loaded.vcl_steps, loaded.vcl_normal, loaded.vcl_angles):
        function.restype = None
    return loaded


def _built(compiler: str) -> Path:
    """The path of the library, compiled if it is not there yet."""
    name = f"step-{_fingerprint(compiler)}.so"
    folder = cache_root()
    if (folder / name).exists():
        return folder / name
    folder.mkdir(parents=True, exist_ok=True)
    # Several processes may build at once: each its own file, and the last rename wins.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / name
        command = [compiler, *_FLAGS, "-o", str(made), *map(str, _SOURCES), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        made.replace(folder / name)
    return folder / name


def _fingerprint(compiler: str) -> str:
    asked = subprocess.run([compiler, "--version"], check=True, capture_output=True, timeout=60)
    parts = [path.read_bytes() for path in (*_SOURCES, *_HEADERS)]
    parts += [" ".join(_FLAGS).encode(), asked.stdout, _processor().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _processor() -> str:
    """What -march=native looks at."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    kinds = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(kinds)}))
