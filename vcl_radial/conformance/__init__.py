"""What a method has to keep to be comparable with the others: `vcl-radial check`.

In a test of your own:

    from vcl_radial import check

    assert not check("my_methods:L2", {"posterior": "none"}).faults
"""

from typing import TYPE_CHECKING

from vcl_radial.conformance.recipe import recipe_for
from vcl_radial.conformance.verdict import Verdict
from vcl_radial.lazy import attributes

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
__getattr__ = attributes(__name__)
