"""The device that a command's runs compute on."""

from __future__ import annotations

import ctypes
import sys
from importlib import metadata

from vcl_radial.errors import UserError
from vcl_radial.runs.executor import MakeExecutor
from vcl_radial.runs.track import AnyTrack


def device_of(choice: str, track: AnyTrack, executor: MakeExecutor | None = None) -> str:
    """The device of a track's runs: "cpu" or "cuda".

    Args:
        choice: "auto", "cpu" or "cuda".
        track: of the runs.
        executor: what makes another executor than worker processes on this machine.

    Raises:
        UserError: there is no CUDA device and "cuda" was asked for.
    """
    if "cuda" not in track.devices:
        return "cpu"
    return usable_device(choice) if executor is None else executor.device


def usable_device(choice: str) -> str:
    """The device of "auto", "cpu" or "cuda".

    Raises:
        UserError: there is no CUDA device and "cuda" was asked for.
    """
    if choice == "cpu":
        return choice
    if may_have_cuda():
        import torch  # which takes seconds

        if torch.cuda.is_available():
            return "cuda"
    if choice == "cuda":
        raise UserError("--device cuda: PyTorch finds no CUDA device here; use --device cpu")
    return "cpu"


def may_have_cuda() -> bool:
    """Whether PyTorch may find a device: on Linux, for CUDA, only where its driver is there."""
    build = metadata.version("torch")
    if build.endswith("+cpu"):
        return False
    if sys.platform != "linux" or "rocm" in build:
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
