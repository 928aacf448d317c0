"""The tests of one page, which are corrected together."""

from __future__ import annotations

import math
from collections.abc import Hashable

from vcl_radial.metrics.seeds import holm


class Family:
    """All tests of a page, by Holm's correction.

    A page is made twice: the first time its tests report their p-values, the second time they get
    the corrected p-values. A test that a page repeats counts once.

    Attributes:
        quoted: families of other pages. A page that quotes families has no other tests.
    """

    def __init__(self) -> None:
        self._p: dict[Hashable, float] = {}
        self._corrected: dict[Hashable, float] | None = None
        self.quoted: list[Family] = []

    def corrected(self, test: Hashable, p: float) -> float:
        """The corrected p-value of a test; before `close` the p-value itself.

        Args:
            test: key that distinguishes the test, such as its differences.
            p: p-value of this test alone; nan is no test.

        Raises:
            LookupError: after `close`, the test was not reported before, and no quoted page has it.
        """
        if math.isnan(p):
            return p
        if self.quoted:
            for family in self.quoted:
                if family._corrected and test in family._corrected:
                    return family._corrected[test]
            raise LookupError("a test is on none of the pages that are quoted")
        if self._corrected is None:
            self._p[test] = p
            return p
        if test not in self._corrected:
            raise LookupError("a test depends on the verdict of another one")
        return self._corrected[test]

    @property
    def has_tests(self) -> bool:
        """Whether a test was reported that is on no quoted page."""
        return bool(self._p)

    def close(self) -> None:
        """Correct the tests that were reported."""
        self._corrected = dict(zip(self._p, holm(list(self._p.values())), strict=True))
