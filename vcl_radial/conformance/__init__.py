"""Checks that make a method comparable with the others: `vcl-radial check`.

In your own test:

    from vcl_radial import check

    assert not check("my_methods:L2", {"posterior": "none"}).faults
"""

from vcl_radial.conformance.kit import CHECKS, Check, Verdicts, check, check_family, iter_verdicts
from vcl_radial.conformance.recipe import recipe_for
from vcl_radial.conformance.streams import STREAMS, Stream
from vcl_radial.conformance.verdict import Verdict

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
