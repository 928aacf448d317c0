"""A user's own table becomes numbers that follow from its cells; what is wrong is one line."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from failing import data_fails, fails

from vcl_radial.data import tables
from vcl_radial.data.named_files import check_table, file_path
from vcl_radial.data.tables import FEWEST_ROWS, load_table, random_splits

ROWS = 30
COLOURS = ["red", "green", "blue"]


def cells() -> list[list[str]]:
    """30 rows of age, colour and price after a header."""
    rows = [[f"{k}", COLOURS[k % 3], f"{k / 7:.3f}"] for k in range(ROWS)]
    return [["age", "colour", "price"], *rows]


def written(path: Path, rows: list[list[str]], separator: str = ",") -> Path:
    path.write_text("".join(separator.join(row) + "\n" for row in rows))
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "flats.csv", cells())


def test_numbers_stay_as_they_are_and_texts_become_one_input_each_in_their_order(table):
    data = load_table(table, "price", splits=3)
    assert data.name == "flats"
    assert data.x.dtype == data.y.dtype == torch.float64
    assert data.x[:, 0].tolist() == list(range(ROWS))
    # blue, green, red
    assert data.x[:4, 1:].tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert data.y.tolist() == [float(f"{k / 7:.3f}") for k in range(ROWS)]
    assert len(data.splits) == 3


def test_every_split_tests_a_tenth_and_depends_on_its_number_alone(table):
    few, many = load_table(table, "price", 2).splits, load_table(table, "price").splits
    assert len(many) == 20
    for split in many:
        assert len(split.test) == ROWS // 10
        assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(ROWS))
    assert [s.test.tolist() for s in few] == [s.test.tolist() for s in many[:2]]
    assert many[0].test.tolist() != many[1].test.tolist()
    order = np.random.default_rng(1).permutation(ROWS)
    assert random_splits(ROWS, 2)[1].test.tolist() == order[: ROWS // 10].tolist()


@pytest.mark.parametrize("separator", [";", "\t"])
def test_semicolons_and_tabs_separate_too_and_spaces_and_empty_rows_do_no_harm(
    table, tmp_path, separator
):
    rows = [[f" {cell} " for cell in row] for row in cells()]
    other = written(tmp_path / "other.csv", [*rows[:5], [""], *rows[5:], ["", "", ""]], separator)
    expected = load_table(table, "price")
    assert load_table(other, "price").checksum == expected.checksum
    with_mark = tmp_path / "excel.csv"
    with_mark.write_bytes(b"\xef\xbb\xbf" + table.read_bytes().replace(b"\n", b"\r\n"))
    assert load_table(with_mark, "price").checksum == expected.checksum
    compressed = tmp_path / "flats.csv.gz"
    compressed.write_bytes(gzip.compress(table.read_bytes()))
    assert load_table(compressed, "price").checksum == expected.checksum


def test_numbers_are_read_to_their_last_bit(tmp_path):
    values = np.random.default_rng(0).normal(size=(ROWS, 2)) * 1e-3
    rows = [["x", "y"], *([repr(float(v)) for v in row] for row in values)]
    data = load_table(written(tmp_path / "exact.csv", rows), "y")
    assert np.array_equal(data.x.numpy(), values[:, :1])
    assert np.array_equal(data.y.numpy(), values[:, 1])


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
@pytest.mark.parametrize("form", ["2,5", "1.234,5", "1 234", "20%", "$20", "(20)", "−5", "1_000"])
def test_a_column_of_numbers_that_others_write_otherwise_is_refused_at_its_first_cell(
    tmp_path, form, share
):
    rows = [["size", "price"], *([form, f"{k}"] for k in range(ROWS))]
    plain = round(share * ROWS)
    for row in rows[1 : 1 + plain]:
        row[0] = "2.5"
    path = written(tmp_path / "flats.csv", rows, ";")
    for target in ("price", "size"):
        with data_fails(path, f"row {plain + 2}, column 'size' is '{form}'"):
            load_table(path, target)


@pytest.mark.parametrize(
    ("cells_of_column", "inputs"),
    [
        (["TRUE", "False"], [[1], [0]]),
        (["12_3", "1e"], [[1, 0], [0, 1]]),
        (["Infinity", "Ann"], [[0, 1], [1, 0]]),
        (["2024-05-12", "2024-05-13"], [[1, 0], [0, 1]]),
        (["1.2.3", "1.2.4"], [[1, 0], [0, 1]]),
        (["10-20", "20-30"], [[1, 0], [0, 1]]),
        (["+5.", ".5"], [[5], [0.5]]),
        (["1e5 ", " 2"], [[1e5], [2]]),
    ],
)
def test_names_stay_texts_and_true_and_false_are_1_and_0(tmp_path, cells_of_column, inputs):
    rows = [["kind", "price"], *([cells_of_column[k % 2], f"{k}"] for k in range(ROWS))]
    data = load_table(written(tmp_path / "flats.csv", rows), "price")
    assert data.x[:2].tolist() == inputs


def test_a_column_of_infinities_is_no_column_of_names(tmp_path):
    rows = [["kind", "price"], *([["inf", "1"][k % 2], f"{k}"] for k in range(ROWS))]
    path = written(tmp_path / "flats.csv", rows)
    with data_fails(path, "row 2, column 'kind' is 'inf'"):
        load_table(path, "price")


def test_how_many_rows_and_inputs_were_read_is_known(table):
    expected = "30 rows, 2 inputs (1 of numbers, 1 of texts as 3 columns)"
    assert load_table(table, "price").summary == expected


def test_texts_that_would_make_too_many_inputs_are_refused(table, monkeypatch):
    monkeypatch.setattr(tables, "MOST_NUMBERS", ROWS * 4)
    assert load_table(table, "price").x.shape == (ROWS, 4)
    monkeypatch.setattr(tables, "MOST_NUMBERS", ROWS * 4 - 1)
    with data_fails(table, "column 'colour'", "take it out"):
        load_table(table, "price")


def test_stray_quotes_do_not_swallow_the_rows_between_them(tmp_path):
    rows = cells()
    rows[9][1], rows[20][1] = '"red', '"green'
    path = written(tmp_path / "flats.csv", rows)
    with data_fails(path, "row 10 "):
        load_table(path, "price")


def test_columns_may_be_named_in_quotes_with_separators_and_line_ends(table, tmp_path):
    rows = cells()
    rows[0] = ['"age\nin years, months; days"', "colour", '"price, €"']
    other = written(tmp_path / "other.csv", rows)
    assert load_table(other, "price, €").checksum == load_table(table, "price").checksum
    with data_fails(other, "'price'"):
        load_table(other, "price")


def changed(row: int, column: int, text: str):
    def change(rows):
        rows[row][column] = text

    return change


def shortened(rows):
    del rows[FEWEST_ROWS:]


def renamed(*names):
    def change(rows):
        rows[0] = list(names)

    return change


def one_column(rows):
    rows[:] = [row[2:] for row in rows]


def same_target(rows):
    for row in rows[1:]:
        row[2] = "4.5"


def names_of_rows(rows):
    for k, row in enumerate(rows[1:]):
        row[1] = f"flat {k}x"


def a_cell_too_many(rows):
    rows[7].append("9")


def a_cell_too_many_at_once(rows):
    rows[1].append("9")


def a_row_cut_off(rows):
    del rows[-1][2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed(5, 0, ""), "row 6, column 'age' is '', a missing value; fill it in"),
        (changed(9, 1, "NA"), "row 10, column 'colour' is 'NA', a missing value; fill it in"),
        (changed(3, 2, "NaN"), "row 4, column 'price' is 'NaN', a missing value"),
        (changed(9, 1, "20%"), "row 10, column 'colour' is '20%', not a plain number"),
        (changed(5, 0, "inf"), "row 6, column 'age' is 'inf', not a plain number; write one such"),
        (changed(5, 0, "TRUE"), "row 6, column 'age' is 'TRUE', not a plain number"),
        (changed(3, 2, "-1e999"), "row 4, column 'price' is '-1e999', not finite"),
        (changed(7, 0, "1e999"), "row 8, column 'age' is '1e999', not finite"),
        (changed(3, 2, "cheap"), "row 4, column 'price' is 'cheap', not a plain number"),
        (changed(3, 2, "1_0"), "row 4, column 'price' is '1_0', not a plain number"),
        (changed(30, 0, "12 years"), "row 31, column 'age' is '12 years', not a plain number"),
        (shortened, f"has {FEWEST_ROWS - 1} rows besides the header; give it {FEWEST_ROWS}"),
        (renamed("age", "colour", "prize"), "no column 'price'; did you mean 'prize'?"),
        (renamed("age", "price", "price"), "has two columns 'price'"),
        (renamed("", "colour", "price"), "column 1 has no name"),
        (one_column, "has one column only, 'price'; add columns"),
        (same_target, "column 'price' is 4.5 in every row"),
        (names_of_rows, "column 'colour' has another text in every row"),
        (a_cell_too_many, "row 8 has 4 fields, and the header 3: delete what is too much, or"),
        (a_cell_too_many_at_once, "row 2 has 4 fields, and the header 3"),
        (a_row_cut_off, "row 31 has 2 fields, and the header 3: fill in"),
        (list.clear, "is empty, or its first row is; name the columns there"),
    ],
)
def test_what_is_wrong_with_a_table_is_one_line_that_names_the_cell(tmp_path, change, words):
    rows = cells()
    change(rows)
    path = written(tmp_path / "flats.csv", rows)
    with data_fails(path, words):
        load_table(path, "price")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file; copy it there, or name another"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "save it as CSV in UTF-8"),
        (b"age,price\n" + b"1,2\n" * 30 + b'"3,4\n', "row 32 cannot be split into cells"),
        (
            b"age,price\n" + b"1,2\n" * 9000 + b"\xff,4\n" * 9000,
            "save it as CSV in UTF-8",
        ),
    ],
)
def test_what_is_no_csv_file_is_refused(tmp_path, content, words):
    path = tmp_path / "flats.csv"
    if content is not None:
        path.write_bytes(content)
    with data_fails(path, words):
        load_table(path, "price")
    with data_fails(tmp_path, "folder"):
        load_table(tmp_path, "price")


def test_a_compressed_file_cut_off_anywhere_is_a_fault_in_one_line(table, tmp_path):
    whole = gzip.compress(table.read_bytes())
    path = tmp_path / "flats.csv.gz"
    for end in range(0, len(whole), 9):
        path.write_bytes(whole[:end])
        with data_fails(path):
            load_table(path, "price")


@pytest.mark.parametrize("splits", [0, 2.5, True])
def test_an_impossible_number_of_splits_is_refused(table, splits):
    with fails("splits", splits):
        load_table(table, "price", splits)


def test_a_table_is_sought_beside_its_benchmark_and_then_in_the_current_folder(
    table, tmp_path, monkeypatch
):
    benchmark = tmp_path / "flats.toml"
    assert file_path("flats.csv", benchmark) == table
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    assert file_path("flats.csv", tmp_path / "other" / "x.toml") == Path("flats.csv")
    assert file_path("flats.csv") == Path("flats.csv")
    assert file_path(str(table), tmp_path / "other" / "x.toml") == table


def test_the_header_is_checked_before_anything_heavy_is_imported(table):
    check_table(table, "price")
    program = (
        "import sys; from pathlib import Path; from vcl_radial.data.named_files import check_table;"
        "check_table(Path(sys.argv[1]), 'price');"
        "assert not {'torch', 'pandas', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(table)], check=True)
