"""The tests of one page, corrected together."""

import math

import pytest

from reports.family import Family
from vcl_radial.metrics import holm


def test_tests_of_a_page_have_holms_correction_and_a_repeated_one_counts_once():
    family = Family()
    p = {"a": 0.01, "b": 0.04, "c": 0.03}
    for test in ("a", "b", "c", "a"):
        assert family.corrected(test, p[test]) == p[test]
    family.close()
    assert [family.corrected(test, p[test]) for test in p] == holm(list(p.values()))


def test_no_test_is_none_of_the_family():
    family = Family()
    family.corrected("a", 0.03)
    assert math.isnan(family.corrected("b", math.nan))
    family.close()
    assert family.corrected("a", 0.03) == 0.03


def test_a_test_that_was_not_there_before_is_refused():
    family = Family()
    family.corrected("a", 0.03)
    family.close()
    with pytest.raises(LookupError):
        family.corrected("b", 0.03)


def test_a_page_that_quotes_others_has_their_corrections_and_no_tests_of_its_own():
    one, other, index = Family(), Family(), Family()
    for test, p in (("a", 0.01), ("b", 0.02)):
        one.corrected(test, p)
    other.corrected("c", 0.04)
    one.close()
    other.close()
    index.quoted = [one, other]
    assert index.corrected("a", 0.01) == 0.02
    assert index.corrected("c", 0.04) == 0.04
    assert one.has_tests
    assert not index.has_tests
    with pytest.raises(LookupError):
        index.corrected("d", 0.5)
