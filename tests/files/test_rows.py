"""One reader of tables: every row is read or named."""

import gzip
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from failing import data_fails

from vcl_radial.data.frames import read_frame
from vcl_radial.files import rows as reader
from vcl_radial.files.rows import read_rows


def table(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(folder: Path, content: str | bytes) -> list[tuple[int, list[str]]]:
    return list(read_rows(table(folder, content)))


def fault(folder: Path, content: str | bytes, name: str = "t.csv") -> str:
    path = table(folder, content, name)
    with data_fails(path) as error:
        list(read_rows(path))
    return str(error.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,b", ["a", "b"]),
        ("a;b", ["a", "b"]),
        ("a\tb", ["a", "b"]),
        ('"a;x;y",b', ["a;x;y", "b"]),
        ('"a,x,y";b', ["a,x,y", "b"]),
        ('a;"b,x"', ["a", "b,x"]),
        ('"size ""m2"", net",b', ['size "m2", net', "b"]),
        ('"size\nin m2",b', ["size\nin m2", "b"]),
        ('"size\r\nin m2, net";b', ["size\r\nin m2, net", "b"]),
        (' a , "b"', ["a", "b"]),
        ("\ufeffa,b", ["a", "b"]),
        ("sep=;\na;b,c", ["a", "b,c"]),
        ("SEP=,\r\na,b;c;d", ["a", "b;c;d"]),
        ('\ufeff"sep=|"\na|b', ["a", "b"]),
        ("sep=\t\na\tb", ["a", "b"]),
    ],
)
def test_a_header_is_read_with_its_quotes_separators_and_line_ends(tmp_path, header, names):
    assert rows(tmp_path, f"{header}\n") == [(1, names)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_rows_are_numbered_as_a_spreadsheet_counts_them(tmp_path, end, last):
    lines = ['"a', 'x",b', "1, 2 ", "", " , ", '"3","4,5"', ",,,", "6,"]
    content = end.join(lines) + (end if last else "")
    expected = [
        (1, [f"a{end}x", "b"]),
        (2, ["1", "2"]),
        (5, ["3", "4,5"]),
        (7, ["6", ""]),
    ]
    assert rows(tmp_path, f"sep=,{end}{content}") == rows(tmp_path, content) == expected
    frame = read_frame(table(tmp_path, content))
    assert list(frame.index) == [2, 5, 7]
    assert frame["b"].tolist() == ["2", "4,5", ""]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("1,2,3", "row 2 has 3 fields, and the header 2: delete what is too much"),
        ("1,2\n\n3", "row 4 has 1 fields, and the header 2: fill in what is missing"),
        ("1,2\n3,", None),
        ('1,2\n"3,4\n5,6\n"7,8', "row 3 cannot be split into cells (',' expected after '\"'"),
        ('1,2\n"3,4\n5,6', "row 3 cannot be split into cells (unexpected end of data)"),
        ('1,2\n"3,4\n5",6', "row 3 cannot be split into cells (a cell goes over several lines)"),
        ('1,2\n3,"4\n5,6\n"\n7,8', "row 3 cannot be split into cells (a cell goes over several"),
        ('1,2\n"3,4"\n5,6', "row 3 has 1 fields"),
        ('1,2\n"3"x,4', "row 3 cannot be split into cells"),
        ('1,2\n3,"' + "4,5\n" * 50_000, "row 3 cannot be split into cells (field larger than"),
        ("1,2\n3," + "4" * 200_000, "row 3 cannot be split into cells (field larger than"),
        ('5" pipe,2\n6" pipe,3', None),
    ],
)
def test_no_row_is_swallowed_moved_or_cut_in_silence(tmp_path, lines, words):
    content = f"a,b\n{lines}\n"
    if words is None:
        assert len(rows(tmp_path, content)) == 3
    else:
        assert fault(tmp_path, content).startswith(words)


@pytest.mark.parametrize("header", ['"a,b', 'a","b', '"a"x,b', 'a,"b'])
def test_a_header_with_a_stray_quote_is_row_1(tmp_path, header):
    for lines in ("1,2\n3,4\n", '1,2\n"x",4\n', '"x,2\n3,4\n'):
        assert fault(tmp_path, f"{header}\n{lines}").startswith("row 1 cannot be split into cells")


@pytest.mark.parametrize("swallowed", ["1,2,3", "1,2,3\n4,5,6", "\n1,2,3"])
def test_a_name_that_swallows_whole_rows_is_refused(tmp_path, swallowed):
    words = fault(tmp_path, f'a,b,"c\n{swallowed}"\n7,8,9\n')
    assert words.startswith("row 1 cannot be split into cells (a name goes over a whole row)")
    assert rows(tmp_path, 'a,b,"c\n1,2"\n7,8,9\n')[1] == (2, ["7", "8", "9"])


@pytest.mark.parametrize(
    "content",
    [
        "a;b\n1;2\n".encode("utf-16"),
        "a;b\n1;2\n".encode("utf-16-le"),
        "grün,b\n1,2\n".encode("latin-1"),
    ],
)
def test_a_file_that_is_not_in_utf_8_is_refused(tmp_path, content):
    assert "save it as CSV in UTF-8" in fault(tmp_path, content)


@pytest.mark.parametrize("content", ["", "\n", "\n\na,b\n1,2\n", ",,\n", "sep=;\n", "\ufeff"])
def test_a_file_without_a_header_is_refused(tmp_path, content):
    assert "is empty, or its first row is" in fault(tmp_path, content)


def test_nul_bytes_are_refused(tmp_path):
    assert "NUL" in fault(tmp_path, b"a,b\n1,\x002\n")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    path = tmp_path / "t.csv"
    for make in (os.mkfifo, os.mkdir, lambda p: p.symlink_to("/dev/zero")):
        make(path)
        with data_fails(path, "not a regular file"):
            list(read_rows(path))
        path.rmdir() if path.is_dir() else path.unlink()
    with data_fails(path, "no such file"):
        list(read_rows(path))


def test_a_damaged_or_cut_off_gz_is_refused(tmp_path):
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    for content in (whole[:-9], whole[:30], b"a,b\n1,2\n", whole[:40] + b"\xff" * 9 + whole[49:]):
        assert fault(tmp_path, content, "t.csv.gz")
    assert len(list(read_rows(table(tmp_path, whole, "t.csv.gz")))) == 1001


def test_a_table_of_too_many_cells_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST_CELLS", 20)
    content = "a,b\n" + "1,2\n" * 9
    assert len(rows(tmp_path, content)) == 10
    assert fault(tmp_path, content + "1,2\n").startswith("has more than 20 cells up to row 11")
    assert fault(tmp_path, content + "\n").startswith("has more than 20 cells up to row 11")


@pytest.mark.processes
def test_a_small_file_that_is_a_huge_line_takes_little_memory(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b\n1,")
        for _ in range(600):
            file.write(b"0" * (1 << 20))
    program = (
        "import sys; from pathlib import Path; from vcl_radial.files.rows import read_rows\n"
        "try: list(read_rows(Path(sys.argv[1])))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
        "from vcl_radial.data.data_files import files_checksum; files_checksum([Path(sys.argv[1])])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2),
    )
    assert done.stdout.startswith(f"DataError {path}: ")
    assert "a line has more than" in done.stdout
