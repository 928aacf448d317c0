"""Reports as text: Markdown, and aligned columns for a terminal."""

import math

import pytest

from vcl_radial.metrics.verdicts import Verdict
from vcl_radial.reporting import markdown
from vcl_radial.reporting.blocks import (
    Cell,
    Claim,
    Column,
    Figure,
    Report,
    Section,
    Table,
    Text,
    claims_table,
    mean_cell,
    signed,
)

TABLE = Table(
    ["method", Column("accuracy (%) ↑", better="higher"), "note"],
    [
        ["radial", mean_cell(98.731, 0.12, best=True), "a"],
        ["2 nets", mean_cell(math.nan), "b"],
        [Cell("paper: MFVI", published=True), Cell("93.9", published=True), ""],
    ],
    title="Of all tasks",
    notes=["Bold: the best."],
)


def test_numbers_are_set_to_the_right_and_marks_are_shown():
    assert markdown.table(TABLE) == (
        "Of all tasks\n\n"
        "| method | accuracy (%) ↑ | note |\n"
        "| --- | ---: | --- |\n"
        "| radial | **98.73 ± 0.12** | a |\n"
        "| 2 nets | – | b |\n"
        "| *paper: MFVI* | *93.9* |  |\n"
        "\nBold: the best.\n"
    )


def test_the_columns_of_a_terminal_are_aligned():
    head, rule, *rows, note, _ = markdown.aligned(TABLE).split("\n")
    assert rows[0].split() == ["radial", "98.73", "±", "0.12", "*", "a"]
    assert {line.index("a") for line in (rows[0][8:],)} == {rule.rindex(" ") + 1 - 8}
    assert head.startswith("method ")
    assert note == "Bold: the best."


def wide(method, headings):
    columns = ["method", *(Column(heading, better="higher") for heading in headings)]
    return Table(columns, [[method, *(mean_cell(98.731, 0.12) for _ in headings)]])


@pytest.mark.parametrize("method", ["radial-vcl", "a-method-with-" + "many-words-" * 8, "x" * 200])
@pytest.mark.parametrize("count", [1, 4, 12])
def test_a_terminal_shows_any_table_in_80_columns(method, count):
    headings = [f"final average accuracy {number} (%) ↑" for number in range(count)]
    text = markdown.aligned(wide(method, headings), 80)
    assert max(map(len, text.splitlines())) <= 80
    values = text.count("98.73 ± 0.12")
    assert values == count or f"{count - values} more column" in text
    head, _, body = text.partition("─")
    assert all(word in head.split() for word in ("final", "accuracy", "(%)"))
    names = "".join(line.split("  ")[0].strip() for line in body.splitlines()[1:])
    assert names.startswith(method)


def test_a_table_that_fits_keeps_its_headings_in_one_line():
    lines = markdown.aligned(
        wide("radial-vcl", ["accuracy (%) ↑", "forgetting (%) ↓"])
    ).splitlines()
    assert len(lines) == 3
    assert lines[0].split("  ")[-1] == "forgetting (%) ↓"


@pytest.mark.parametrize(("text", "key"), [("98.7 ± 0.1", 98.7), ("−1,234", -1234.0), ("~15M", 15)])
def test_a_cell_is_sorted_by_the_number_that_it_begins_with(text, key):
    assert Cell(text).key == key
    assert math.isnan(Cell("–").key)
    assert Cell(text, sort=1.0).key == 1.0


def test_names_cannot_break_out_of_the_markdown():
    name = "a|b <script>&"
    text = markdown.table(Table(["method", name], [[name, name]]))
    assert text.splitlines()[2] == r"| a\|b &lt;script>&amp; | a\|b &lt;script>&amp; |"
    report = Report(name, [Section(name, [Text(name, [name])])], [(name, [name])], [name])
    assert "<" not in markdown.page(report)


def test_a_page_has_its_notices_sections_and_what_stands_behind_it():
    report = Report(
        "split",
        [
            Section("", [TABLE, Figure("bars", None, "The bars")]),
            Section("Beside", [Text("As follows.", ["one", "two"])]),
            Section("Runs", [Text("x = 1\n", style="code")], folded=True),
        ],
        [("seeds", ["0, 1"]), ("command", ["vcl-radial run <x>"])],
        ["Synthetic."],
    )
    page = markdown.page(report)
    assert page.startswith("# split\n\n> Synthetic.\n\nOf all tasks\n\n| method |")
    assert "\n\n![The bars](bars.png)\n\n## Beside\n\nAs follows.\n\n- one\n- two\n\n" in page
    assert page.endswith(
        "## Where the numbers come from\n\n- seeds: 0, 1\n- command: `vcl-radial run <x>`\n"
    )
    details = markdown.page(report, folded=True)
    assert details == "# split: details\n\n## Runs\n\n```\nx = 1\n```\n"


def test_a_claim_that_does_not_hold_says_why():
    table = claims_table(
        [Claim("a", "b", Verdict.REPRODUCED, "c"), Claim("d", "e", Verdict.NO_EVIDENCE, "f")]
    )
    assert [row[2].text for row in table.body] == ["reproduced", "no evidence either way: f"]


@pytest.mark.parametrize(
    ("value", "text"), [(1.234, "+1.23"), (-1.234, "-1.23"), (0.001, "0.00"), (math.nan, "–")]
)
def test_a_difference_has_its_sign(value, text):
    assert signed(value, 2) == text
