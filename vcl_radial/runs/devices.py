"""The device that a command's runs compute on."""

from __future__ import annotations

import ctypes
import sys
from importlib import metadata

from vcl_radial.errors import bad_value
from vcl_radial.runs.executor import Executor
from vcl_radial.runs.track import AnyTrack


def device_of(choice: str, track: AnyTrack, executor: Executor | None = None) -> str:
    """The device of a track's runs: "cpu" or "cuda".

    Args:
        choice: "auto", "cpu" or "cuda".
        track: the track of the runs.
        executor: the executor; None for worker processes on this machine.

    Raises:
        UserError: the choice is "cuda" and there is no CUDA device.
    """
    if "cuda" not in track.devices:
        return "cpu"
    elsewhere = None if executor is None else executor.device
    return elsewhere or usable_device(choice)


def usable_device(choice: str) -> str:
    """The device of this machine for the choice "auto", "cpu" or "cuda".

    Raises:
        UserError: the choice is "cuda" and there is no CUDA device.
    """
    if choice == "cpu":
        return choice
    if may_have_cuda():
        import torch  # this takes seconds

        if torch.cuda.is_available():
            return "cuda"
    if choice == "cuda":
        raise bad_value("device", choice, "needs a CUDA device, and PyTorch finds none; use cpu")
    return "cpu"


def may_have_cuda() -> bool:
    """Whether PyTorch may find a CUDA device; on Linux this needs the CUDA driver."""
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
