"""The texts of figures: filled with numbers, and verdicts that follow from rules."""

from pathlib import Path

import pytest
from matplotlib.colors import to_hex

from reports.papers.picture import draw
from reports.papers.texts import Undecided, fill, listed, of_one_run
from vcl_radial.metrics.verdicts import Verdict
from vcl_radial.reporting.figures.drawing import RADIAL, Curve

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

[claims.unlike]
verdict = "not comparable"
reason = "other data"
published = "it is alike"
ours = "it is not"

[figure]
title = "A picture"
notes = []
per_line = 1
width = 1.0
height = 1.0
key = ["radial"]

[looks]
radial = { colour = "radial", dash = "dashed" }
"*, draws" = { colour = "#009e73", kind = "dots" }
"limit" = { colour = "ink" }

[[panels]]
title = "{count} of them"
draw = [{ curves = "a", only = ["radial*"] }, { curves = "b" }]
log = "x"
xlim = [0.5, "{count}"]
marks = [{ x = "{values[1]}", text = "one" }]
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "figure.toml").write_text(TOML)
    return str(tmp_path / "figure.py")


NUMBERS = {"count": 1200, "values": [0.25, 1.0]}


def test_numbers_fill_the_texts_and_of_a_list_each_is_formatted(module):
    texts = fill(module, NUMBERS, {"small": True, "unlike": True})
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
    claim, _ = fill(module, NUMBERS, {"small": rule, "unlike": True})["claims"]
    assert (claim.published, claim.ours) == ("it is small", "1200")
    assert claim.conclusion == conclusion


@pytest.mark.parametrize("alike", [True, False])
def test_a_claim_may_state_why_its_setting_decides_nothing(module, alike):
    _, claim = fill(module, NUMBERS, {"small": True, "unlike": alike})["claims"]
    assert claim.verdict is Verdict.NOT_COMPARABLE
    assert claim.because.endswith("it holds") == alike


@pytest.mark.parametrize("key", ["unlike", "large"])
def test_every_claim_has_one_rule_and_every_rule_a_claim(module, key):
    rules = {"small": True, "unlike": True} | {"large": True}
    if key == "unlike":
        rules = {"small": True}
    with pytest.raises(KeyError, match=key):
        fill(module, NUMBERS, rules)


def test_a_picture_has_the_curves_of_its_panels_in_their_looks(module):
    curves = [
        Curve("a", "radial", [1.0, 2.0], [0.1, 0.2]),
        Curve("a", "radial, draws", [1.0, 2.0], [0.1, 0.2], [0.0, 0.1], [0.2, 0.4]),
        Curve("a", "other", [1.0], [0.1]),
        Curve("b", "limit", [1.0, 2.0, float("inf")], [0.1, 0.2, 0.3]),
        Curve("c", "radial", [1.0], [0.1]),
    ]
    (axes,) = draw(module, curves, NUMBERS).axes
    assert axes.get_title("left") == "1200 of them"
    assert axes.get_xscale() == "log"
    assert axes.get_xlim() == (0.5, 1200)
    radial, draws, across, limit, mark = axes.get_lines()
    assert [to_hex(line.get_color()) for line in (radial, draws)] == [RADIAL, "#009e73"]
    assert [line.get_linestyle() for line in (radial, draws)] == ["--", "None"]
    assert set(across.get_ydata()) == {0.3}  # the value at infinity, across the panel
    assert limit.get_ydata().tolist() == [0.1, 0.2]
    assert set(mark.get_xdata()) == {1.0}


def test_keys_and_values_are_listed_in_one_form():
    assert listed("{1:.1f} (D = {0:,})", {1000: 0.25, 2: 1}) == "0.2 (D = 1,000), 1.0 (D = 2)"
