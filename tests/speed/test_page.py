import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.speed import page
from benchmarks.speed.measuring import read
from benchmarks.speed.pictures import Growth, Ratios
from benchmarks.speed.setting import Record, Row, rows_of
from reports import pages

TEMPLATE = Path(pages.__file__).parent / "speed" / "README.md.jinja"

STEPS = [
    Row("naive", "batch=8", "seconds per step", 0.05, 0.049, 0.0513, 7),
    Row("radial-vcl", "batch=8", "seconds per step", 0.06, 0.06, 0.06, 7),
    Row("radial-vcl", "batch=8", "ratio to naive", 1.2, 1.1, 1.3, 7),
]
GROWTH = [
    row
    for axis in ("weights", "tasks")
    for size in (4, 16)
    for metric, factor in (("seconds per step", 0.5), ("memory: peak (MB)", 2.0))
    for row in rows_of(
        {metric: {"radial-vcl": [factor * size, 3 * factor * size]}}, f"{axis}={size}"
    )
]
ENVIRONMENT = {
    "commit": "abc123",
    "device": "cpu",
    "processor": "a processor",
    "threads": 1,
    "python": "3.11",
    "packages": {"torch": "2.4", "bayesian-torch": None},
    "compiled pass": "in use",
}


def recorded(rows, command="python -m benchmarks.speed step"):
    return Record(list(rows), command, "Fashion-MNIST", ENVIRONMENT)


def test_the_csv_holds_every_number_in_full():
    records = {"step": recorded(STEPS), "growth": recorded(GROWTH)}
    header, *lines = csv.reader(io.StringIO(page.to_csv(records)))
    assert ",".join(header) == "section,variant,size,metric,median,low,high,repeats"
    rows = [Row(*line[1:4], *map(float, line[4:7]), int(line[7])) for line in lines]
    assert rows == STEPS + GROWTH


def test_a_table_has_a_line_per_variant_and_a_column_per_metric():
    (table,) = page.tables(STEPS)
    headings = ["7 rounds", "seconds per step", "ratio to naive"]
    assert [head.heading for head in table.heads] == headings
    assert table.rows == [
        ["naive, batch=8", "0.05 (0.049 - 0.0513)", ""],
        ["radial-vcl, batch=8", "0.06", "1.2 (1.1 - 1.3)"],
    ]


def test_each_axis_has_a_table_and_memory_one_of_its_own():
    shown = [[head.heading for head in table.heads][1:] for table in page.tables(GROWTH)]
    assert shown == 2 * [["seconds per step"], ["memory: peak (MB)"]]


def test_a_table_says_how_many_rounds_there_were():
    rows = [STEPS[0], STEPS[1]._replace(repeats=1)]
    assert page.tables(rows)[0].heads[0].heading == "1 or 7 rounds"


def test_the_page_says_where_its_numbers_come_from(tmp_path):
    records = {
        "growth": recorded(GROWTH, "python -m benchmarks.speed growth"),
        "step": recorded(STEPS),
    }
    for name, record in records.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(asdict(record)))
    (text,) = pages.render([TEMPLATE], tmp_path).values()
    assert read(tmp_path) == records
    for part in (
        "`python -m benchmarks.speed step`",
        "`python -m benchmarks.speed growth`",
        "Fashion-MNIST",
        "abc123",
        "(a processor), 1 thread(s)",
        "torch 2.4",
        "compiled pass: in use",
        "](step.png)",
        "](growth.png)",
        "| 7 rounds | seconds per step |",
        "| radial-vcl, batch=8 | 0.06 | 1.2 (1.1 - 1.3) |",
    ):
        assert part in text
    assert "bayesian-torch" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.1549, "1.15"), (0.00012345, "0.000123"), (279404.0, "279,404"), (99.96, "100")],
)
def test_numbers_have_three_digits(value, text):
    assert page.number(value) == text


def test_growth_has_a_line_of_panels_for_each_axis_and_a_panel_for_each_metric():
    metrics = ("seconds per step", "memory: peak (MB)")
    figure = Growth("growth", "a title", metrics).draw([*GROWTH, *STEPS[2:]])
    panels = [(axes.get_xlabel(), axes.get_title(loc="left")) for axes in figure.axes]
    assert panels == [(axis, metric) for axis in ("weights", "tasks") for metric in metrics]
    tops = [axes.get_position().y1 for axes in figure.axes]
    assert tops[0] == tops[1] > tops[2] == tops[3]
    line, _, (bars,) = figure.axes[3].containers[0].lines
    assert line.get_xdata().tolist() == [4, 16]
    assert line.get_ydata() == pytest.approx([2 * 2 * 4, 2 * 2 * 16])
    assert bars.get_segments()[0][:, 1] == pytest.approx([2 * 4, 3 * 2 * 4])


def test_a_picture_of_ratios_has_a_dot_and_a_bar_for_each_variant():
    (axes,) = Ratios("step", "a title", "ratio to naive").draw(STEPS).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["radial VCL, batch 8"]
    _, bar, dot = (line.get_xdata() for line in axes.get_lines())
    assert (list(bar), list(dot)) == ([1.1, 1.3], [1.2])
