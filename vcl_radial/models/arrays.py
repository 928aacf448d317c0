"""Numbers that a user gives to a kept model, as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from vcl_radial.errors import DataError, bad_value

LARGEST = 1e7
"""Most standard deviations of a standardised input from the mean.

Among N numbers that are standardised by themselves none exceeds sqrt(N).
"""

_KEPT = {
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
}
"""Types for which PyTorch has all functions; other real numbers become float64."""


def real_numbers(values: Any, at: str) -> Tensor:
    """An array, a tensor, a data frame or a list of real numbers as a tensor.

    Args:
        values: the numbers.
        at: their name, for messages.

    Raises:
        DataError: they are not real numbers, or some are masked.
    """
    try:
        numbers = _dense(values.detach()) if isinstance(values, Tensor) else _from_array(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise DataError("must be an array of real numbers, without gaps", at=at) from None
    return numbers if numbers.dtype in _KEPT else numbers.double()


def _dense(values: Tensor) -> Tensor:
    if values.is_complex() or values.is_meta:
        raise TypeError
    return values.to_dense()


def _from_array(values: Any) -> Tensor:
    array = np.asarray(values)
    if array.dtype.kind == "O":  # such as a data frame's, of columns of several types
        array = np.array(array.tolist())
    if array.dtype.kind not in "biuf" or np.ma.is_masked(values):
        raise TypeError
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return torch.from_numpy(np.require(native, requirements=["C", "W"]))


def check_scale(x: Tensor, at: str) -> None:
    """Check that no standardised input is too large to predict from.

    Raises:
        DataError: one has more than `LARGEST` standard deviations.
    """
    if len(x) and (most := float(x.abs().max())) > LARGEST:
        raise DataError(
            f"holds a number too large: it is {most:.1g} standard deviations from the mean in "
            f"training, and at most {LARGEST:.0g} are possible; give it in the training's unit",
            at=at,
        )


def usable_device(device: str | torch.device) -> torch.device:
    """A device that computes on this machine.

    Raises:
        UserError: there is no such device.
    """
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()
    except Exception:  # each kind of device has its own errors, of many classes
        usable = "cpu or cuda" if torch.cuda.is_available() else "cpu"
        raise bad_value(
            "device", str(device), f"is no device of this machine: use {usable}"
        ) from None
    return found
