"""The texts of figures: filled with numbers, and verdicts that follow from rules."""

from pathlib import Path

import pytest

from reports.papers.texts import Undecided, fill, listed, of_one_run
from vcl_radial.metrics.verdicts import Verdict

TOML = """
title = "Of {count}"
source = "Fig. 0"
shown = ["{values:.1f} of {values[0]:.2f}"]

[settings]
draws = "{count:,}"

[claims.small]
published = "it is small"
ours = "{count}"
because = "it is {count}"
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "figure.toml").write_text(TOML)
    return str(tmp_path / "figure.py")


NUMBERS = {"count": 1200, "values": [0.25, 1.0]}


def test_numbers_fill_the_texts_and_of_a_list_each_is_formatted(module):
    texts = fill(module, NUMBERS, {"small": True})
    assert texts["title"] == "Of 1200"
    assert texts["shown"] == ["0.2, 1.0 of 0.25"]
    assert texts["settings"] == [("draws", "1,200")]
    assert texts["notes"] == []


@pytest.mark.parametrize(
    ("rule", "conclusion"),
    [
        (True, "reproduced"),
        (False, "not reproduced: it is 1200"),
        (Verdict.NO_EVIDENCE, "no evidence either way: it is 1200"),
        (of_one_run(True), "no evidence either way: one run of each method; here it holds"),
        (
            Undecided(Verdict.NOT_COMPARABLE, "other data", False),
            "not comparable: other data; here it does not hold: it is 1200",
        ),
    ],
)
def test_the_rule_of_a_claim_decides_its_verdict(module, rule, conclusion):
    (claim,) = fill(module, NUMBERS, {"small": rule})["claims"]
    assert (claim.published, claim.ours) == ("it is small", "1200")
    assert claim.conclusion == conclusion


@pytest.mark.parametrize("rules", [{}, {"small": True, "large": True}])
def test_every_claim_has_one_rule_and_every_rule_a_claim(module, rules):
    with pytest.raises(KeyError, match=r"small|large"):
        fill(module, NUMBERS, rules)


def test_keys_and_values_are_listed_in_one_form():
    assert listed("{1:.1f} (D = {0:,})", {1000: 0.25, 2: 1}) == "0.2 (D = 1,000), 1.0 (D = 2)"
