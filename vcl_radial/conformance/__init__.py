"""Checks that make a method comparable with the others: `vcl-radial check`.

In your own test:

    from vcl_radial import check

    assert not check("my_methods:L2", {"posterior": "none"}).faults
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vcl_radial.conformance.recipe import recipe_for
from vcl_radial.conformance.verdict import Verdict

if TYPE_CHECKING:
    from vcl_radial.conformance.kit import (
        CHECKS,
        Check,
        Verdicts,
        check,
        check_family,
        iter_verdicts,
    )
    from vcl_radial.conformance.streams import STREAMS, Stream

__all__ = [
    "CHECKS",
    "STREAMS",
    "Check",
    "Stream",
    "Verdict",
    "Verdicts",
    "check",
    "check_family",
    "iter_verdicts",
    "recipe_for",
]

# Imported when first used: PyTorch and Avalanche take seconds.
_MODULES = {
    "CHECKS": "kit",
    "Check": "kit",
    "Verdicts": "kit",
    "check": "kit",
    "check_family": "kit",
    "iter_verdicts": "kit",
    "STREAMS": "streams",
    "Stream": "streams",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
