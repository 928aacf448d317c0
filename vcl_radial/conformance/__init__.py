"""Checks that make a method comparable with the others: `vcl-radial check`.

In your own test:

    from vcl_radial import check

    assert not check("my_methods:L2", {"posterior": "none"}).faults
"""

from typing import TYPE_CHECKING

from vcl_radial.conformance.recipe import recipe_for
from vcl_radial.conformance.verdict import Verdict
from vcl_radial.system.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
