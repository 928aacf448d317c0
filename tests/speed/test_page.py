import csv
import io

import pytest
from speed_rows import row

from benchmarks.speed import page
from benchmarks.speed.measuring import read
from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Record, Row
from vcl_radial.reporting import record

ROWS = [
    Row("step", "floor", "", "seconds per epoch", 0.05, 0.049, 0.0513, 7),
    row("step", "ours", "", "seconds per epoch", [0.06] * 7),
    row("step", "ours", "", "ratio to the floor", [1.2, 1.1, 1.3, 1.2, 1.2, 1.2, 1.2]),
]
GROWTH = [
    row("growth", "radial-vcl", "width=100", "seconds per step", [0.5]),
    row("growth", "radial-vcl", "width=100", "memory: prior", [2.0]),
    row("growth", "radial-vcl", "depth=4", "seconds per step", [0.7]),
]


def test_the_csv_holds_every_number_in_full():
    records = {"step": recorded(ROWS), "growth": recorded(GROWTH)}
    header, *lines = csv.reader(io.StringIO(page.to_csv(records)))
    assert ",".join(header) == "section,variant,size,metric,median,low,high,repeats"
    read = [Row(*line[:4], *map(float, line[4:7]), int(line[7])) for line in lines]
    assert read == ROWS + GROWTH


def test_a_table_has_a_line_per_variant_and_a_column_per_metric():
    (table,) = page.tables(ROWS).values()
    assert [head.heading for head in table.heads] == [
        "7 rounds",
        "seconds per epoch",
        "ratio to the floor",
    ]
    assert table.rows == [
        ["floor", "0.05 (0.049 - 0.0513)", ""],
        ["ours", "0.06", "1.2 (1.1 - 1.3)"],
    ]


def test_each_axis_has_a_table_and_memory_one_of_its_own():
    fitted = row("growth", "seconds over width", "", "exponent, radial-vcl", [1.0])
    kinds = ["width", "width, memory", "depth", "exponents"]
    assert list(page.tables([*GROWTH, fitted])) == kinds


def test_a_table_says_how_many_rounds_there_were():
    many = [r._replace(repeats=7) for r in GROWTH[::2]]
    assert [t.heads[0].heading for t in page.tables(GROWTH + many[:1]).values()] == [
        "1 or 7 rounds",
        "1 round",
        "1 round",
    ]
    assert [t.heads[0].heading for t in page.tables(many).values()] == ["7 rounds", "7 rounds"]


ENVIRONMENT = {
    "commit": "abc123",
    "device": "cpu",
    "processor": "a processor",
    "threads": 1,
    "python": "3.11",
    "packages": {"torch": "2.4", "bayesian-torch": None},
}


def recorded(rows, notes=(), command="python -m benchmarks.speed step"):
    return Record(list(rows), list(notes), command, "Fashion-MNIST", ENVIRONMENT)


def test_the_page_says_where_its_numbers_come_from():
    text = page.to_markdown(
        {
            "step": recorded(ROWS, ["a note"]),
            "growth": recorded(GROWTH, command="python -m benchmarks.speed growth"),
        },
        {"step": "an epoch", "growth": "all"},
        {"step": [Ratios("step", "ratios", ""), Ratios("more", "more ratios", "")], "growth": []},
    )
    for words in (
        "`python -m benchmarks.speed step`",
        "`python -m benchmarks.speed growth`",
        "Fashion-MNIST",
        "abc123",
        "(a processor), 1 thread(s)",
        "torch 2.4",
        "![ratios](step.png)",
        "![more ratios](more.png)",
        "| 7 rounds | seconds per epoch |",
        "| ours | 0.06 | 1.2 (1.1 - 1.3) |",
        "- a note",
    ):
        assert words in text
    assert "bayesian-torch" not in text


def test_what_is_kept_is_read_as_it_was_and_what_is_damaged_is_named(tmp_path, capsys):
    kept = recorded(ROWS, ["a note"])
    record.write(tmp_path, "growth", recorded(GROWTH))
    record.write(tmp_path, "step", kept)
    assert list(read(tmp_path)) == ["growth", "step"]
    assert read(tmp_path)["step"] == kept
    (tmp_path / "growth.json").write_text('{"rows": [')
    assert list(read(tmp_path)) == ["step"]
    assert "growth.json: damaged" in capsys.readouterr().err


def test_the_terminal_shows_the_same_cells_in_columns():
    lines = page.to_text(ROWS, ["a note"]).splitlines()
    assert lines[3].split() == ["ours", "0.06", "1.2", "(1.1", "-", "1.3)"]
    assert lines[0].index("ratio") + len("ratio to the floor") == len(lines[0]) == len(lines[3])
    assert lines[-1].strip() == "a note"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.1549, "1.15"), (0.00012345, "0.000123"), (279404.0, "279,404"), (99.96, "100")],
)
def test_numbers_have_three_digits(value, text):
    assert page.number(value) == text
