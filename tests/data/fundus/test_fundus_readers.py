"""Every folder gives the same kind of table, and what is wrong with it is said in one line."""

import csv
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from failing import data_fails, fails
from fundus_helpers import noise_picture
from PIL import Image

from vcl_radial.data.data_files import DATA_VARIABLE
from vcl_radial.data.fundus import FUNDUS_DATASETS, load_photographs
from vcl_radial.data.fundus.labels import read_labels
from vcl_radial.data.fundus.layouts import LAYOUTS
from vcl_radial.data.fundus.readers import read_folder
from vcl_radial.errors import DataError

read_kaggle = partial(read_folder, layouts=LAYOUTS["kaggle-eyepacs"][0])


def write_csv(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def write_images(folder, names, suffix):
    folder.mkdir(parents=True, exist_ok=True)
    for k, name in enumerate(names):
        Image.fromarray(noise_picture(k)).save(folder / f"{name}{suffix}")


GRADES = {"10_left": 0, "10_right": 1, "7_left": 4, "7_right": 2}


@pytest.fixture
def kaggle(tmp_path):
    write_csv(tmp_path / "trainLabels.csv", ["image", "level"], GRADES.items())
    write_images(tmp_path / "train", GRADES, ".jpeg")
    return tmp_path


def facts(photographs):
    return [(r.name, r.patient, r.eye, r.grade, r.site) for r in photographs.rows]


def test_kaggles_names_contain_patient_and_eye(kaggle):
    photographs = read_kaggle(kaggle)
    assert facts(photographs) == [
        ("10_left", "10", "left", 0, "eyepacs"),
        ("10_right", "10", "right", 1, "eyepacs"),
        ("7_left", "7", "left", 4, "eyepacs"),
        ("7_right", "7", "right", 2, "eyepacs"),
    ]
    assert photographs.patients_known
    assert photographs.referable.tolist() == [0, 0, 1, 1]


def test_kaggles_photographs_may_lie_beside_the_table(kaggle):
    expected = facts(read_kaggle(kaggle))
    for path in (kaggle / "train").iterdir():
        path.rename(kaggle / path.name)
    (kaggle / "train").rmdir()
    assert facts(read_kaggle(kaggle)) == expected


def test_a_name_without_an_eye_is_a_fault_at_kaggle(kaggle, lines):
    write_csv(kaggle / "trainLabels.csv", ["image", "level"], [*GRADES.items(), ("scan7", 1)])
    write_images(kaggle / "train", ["scan7"], ".jpeg")
    assert len(read_kaggle(kaggle, "skip", lines.append)) == 4
    line, _ = lines
    assert "1 of 5" in line
    assert "1 not named <patient>_left or <patient>_right (scan7)" in line


def test_a_name_without_an_eye_in_the_eyepacs_subset_leaves_the_other_pairs(tmp_path, lines):
    names = [*GRADES, "extra"]
    write_csv(tmp_path / "labels.csv", ["image", "level"], [(name, 0) for name in names])
    write_images(tmp_path / "images", names, ".jpg")
    photographs = load_photographs("eyepacs-subset", tmp_path, on_fault="skip", report=lines.append)
    assert photographs.patients_known
    assert len(photographs) == len(GRADES)
    assert "1 not named <patient>_left or <patient>_right (extra)" in lines[0]


def test_aptos(tmp_path):
    write_csv(tmp_path / "train.csv", ["id_code", "diagnosis"], [("a1", 3), ("b2", 0)])
    write_images(tmp_path / "train_images", ["a1", "b2"], ".png")
    photographs = load_photographs("aptos", tmp_path)
    assert facts(photographs) == [
        ("a1", "a1", "unknown", 3, "aptos"),
        ("b2", "b2", "unknown", 0, "aptos"),
    ]
    assert not photographs.patients_known


@pytest.mark.parametrize("name", ["aptos", "odir", "idrid", "eyepacs-subset"])
def test_a_table_of_labels_is_read_where_the_data_set_lies(tmp_path, name):
    """Not the one of another data set in the data folder."""
    places = {
        "odir": "ODIR",
        "aptos": "APTOS",
        "idrid": "IDRiD",
        "eyepacs-subset": "EyePACS-subset",
    }
    header = ["image", "level", "patient", "eye", "site", "age"]
    for k, (other, place) in enumerate([("folder", "."), *places.items()]):
        folder = tmp_path / "retinopathy" / place
        rows = [(f"{k}_left", 3, "p", "left", other, 50), (f"{k}_right", 0, "p", "", "", 50)]
        write_csv(folder / "labels.csv", header, rows)
        write_images(folder / "images", [f"{k}_left", f"{k}_right"], ".jpg")
    k = 1 + list(places).index(name)
    expected = [(f"{k}_left", "p", "left", 3, name), (f"{k}_right", "p", "unknown", 0, name)]
    for root in (tmp_path, tmp_path / "retinopathy", tmp_path / "retinopathy" / places[name]):
        photographs = load_photographs(name, root)
        assert facts(photographs) == expected
        assert photographs.name == name
        assert photographs.notice


@pytest.mark.parametrize("name", ["odir", "folder"])
def test_other_diseases_are_a_data_set_of_their_own(tmp_path, lines, name):
    rows = [("a", -1, "p"), ("b", 2, "p"), ("c", 0, "q"), ("d", "-1.0", "r")]
    write_csv(tmp_path / "labels.csv", ["image", "level", "patient"], rows)
    write_images(tmp_path / "images", "abcd", ".jpg")
    graded, other = (
        load_photographs(n, tmp_path, report=lines.append) for n in (name, name + "-other")
    )
    assert [row.name for row in graded.rows] == ["b", "c"]
    assert graded.referable.tolist() == [1, 0]
    assert [(row.name, row.patient, row.grade) for row in other.rows] == [
        ("a", "p", -1),
        ("d", "r", -1),
    ]
    assert other.referable.tolist() == [-1, -1]
    assert other.name == f"{graded.name}-other"
    assert lines == [f"{tmp_path / 'labels.csv'}: 4 rows"] * 2
    # Only photographs that are asked for can be missing.
    (tmp_path / "images" / "d.jpg").unlink()
    assert len(load_photographs(name, tmp_path)) == 2
    with data_fails(tmp_path, "1 of 2 photographs", "1 missing (d)"):
        load_photographs(f"{name}-other", tmp_path)


@pytest.mark.parametrize(
    ("level", "name", "words"),
    [(2, "odir-other", "photographs of level -1"), (-1, "odir", "graded photographs")],
)
def test_a_folder_without_such_photographs_says_so(tmp_path, level, name, words):
    write_csv(tmp_path / "labels.csv", ["image", "level"], [("a", level)])
    write_images(tmp_path / "images", "a", ".jpg")
    with data_fails(tmp_path, "labels.csv", words):
        load_photographs(name, tmp_path)


@pytest.mark.parametrize("name", ["aptos", "idrid", "eyepacs-subset"])
def test_elsewhere_a_level_of_less_than_0_is_a_fault(tmp_path, name):
    write_csv(tmp_path / "labels.csv", ["image", "level"], [("1_left", -1), ("1_right", 0)])
    write_images(tmp_path / "images", ["1_left", "1_right"], ".jpg")
    with data_fails(tmp_path, "1_left", "'-1'"):
        load_photographs(name, tmp_path)


def test_idrid_as_published_has_its_split_and_empty_columns(tmp_path):
    for letter, words, grade in (("a", "Training", 4), ("b", "Testing", 1)):
        table = f"2. Groundtruths/{letter}. IDRiD_Disease Grading_{words} Labels.csv"
        header = ["Image name", "Retinopathy grade", "Risk of macular edema ", "", ""]
        write_csv(tmp_path / table, header, [("IDRiD_001", grade, 0, "", ""), ("",) * 5])
        folder = tmp_path / "1. Original Images" / f"{letter}. {words} Set"
        write_images(folder, ["IDRiD_001"], ".jpg")
    photographs = load_photographs("idrid", tmp_path)
    assert [(r.name, r.grade, r.part) for r in photographs.rows] == [
        ("train_IDRiD_001", 4, "train"),
        ("test_IDRiD_001", 1, "test"),
    ]
    first, second = (photographs.reader.read(row, 16) for row in photographs.rows)
    assert first.size == second.size == (24, 20)
    assert len({row.path for row in photographs.rows}) == 2


def test_a_users_folder_may_have_optional_columns(tmp_path):
    header = ["image", "level", "patient", "eye", "site", "split"]
    rows = [("a.png", 2, "p1", "Left", "ward 3", "train"), ("b", "0.0", "p2", "", "", "")]
    write_csv(tmp_path / "labels.csv", header, rows)
    write_images(tmp_path / "images", ["a", "b"], ".png")
    photographs = read_folder(tmp_path)
    assert facts(photographs) == [
        ("a", "p1", "left", 2, "ward 3"),
        ("b", "p2", "unknown", 0, tmp_path.name),
    ]
    assert [row.part for row in photographs.rows] == ["train", ""]


def test_without_a_column_patients_come_from_the_names_if_all_have_them(tmp_path):
    write_csv(tmp_path / "labels.csv", ["image", "level"], GRADES.items())
    write_images(tmp_path / "images", GRADES, ".jpg")
    assert read_folder(tmp_path).patients.tolist() == ["10", "10", "7", "7"]
    write_csv(tmp_path / "labels.csv", ["image", "level"], [*GRADES.items(), ("odd", 0)])
    write_images(tmp_path / "images", ["odd"], ".jpg")
    photographs = read_folder(tmp_path)
    assert not photographs.patients_known
    assert len(set(photographs.patients.tolist())) == 5


def test_unknown_patients_are_reported(tmp_path, lines):
    write_csv(tmp_path / "labels.csv", ["image", "level"], [("a", 0)])
    write_images(tmp_path, ["a"], ".jpg")
    load_photographs("folder", tmp_path, report=lines.append)
    assert "each counts as a patient of its own" in lines[-1]


BAD_ROWS = [
    (("x_left", ""), "1 not graded (x_left)"),
    (("x_left", "5"), "1 graded outside 0 to 4 (x_left: row 6, column 'level' is '5')"),
    (("x_left", "-1"), "1 graded outside 0 to 4 (x_left: row 6, column 'level' is '-1')"),
    (("x_left", "2.5"), "1 graded outside 0 to 4 (x_left: row 6, column 'level' is '2.5')"),
    (("x_left", "mild"), "1 graded outside 0 to 4 (x_left: row 6, column 'level' is 'mild')"),
    (("x_left", "nan"), "1 graded outside 0 to 4 (x_left: row 6, column 'level' is 'nan')"),
    (("x_left", "2,0"), "1 graded outside 0 to 4 (x_left: row 6, column 'level' is '2,0')"),
    (("x_left", "0_2"), "1 graded outside 0 to 4 (x_left: row 6, column 'level' is '0_2')"),
    (("x_left", "٢"), "1 graded outside 0 to 4 (x_left: row 6, column 'level' is '٢')"),
    (("", "1"), "1 without a name (row 6)"),
]


@pytest.mark.parametrize(("row", "reason"), BAD_ROWS, ids=str)
def test_a_bad_row_is_named_and_counted_and_the_others_stay(kaggle, lines, row, reason):
    write_csv(kaggle / "trainLabels.csv", ["image", "level"], [*GRADES.items(), row])
    if row[0]:
        write_images(kaggle / "train", [row[0]], ".jpeg")
    with pytest.raises(DataError) as stopped:
        read_kaggle(kaggle, "stop", lines.append)
    assert lines == []
    photographs = read_kaggle(kaggle, "skip", lines.append)
    assert {r.name: r.grade for r in photographs.rows} == GRADES
    for line in (str(stopped.value), lines[0]):
        assert f"{kaggle}: 1 of 5 photographs cannot be used: {reason}" in line
        assert "\n" not in line
    assert [fault.image for fault in photographs.faults] == [row[0] or "row 6"]


@pytest.mark.parametrize("second", [0, 3], ids=["agreeing", "contradicting"])
def test_a_photograph_that_is_listed_twice_is_left_out(kaggle, lines, second):
    rows = [*GRADES.items(), ("10_left", second), ("10_left.jpeg", second)]
    write_csv(kaggle / "trainLabels.csv", ["image", "level"], rows)
    photographs = read_kaggle(kaggle, "skip", lines.append)
    assert [row.name for row in photographs.rows] == ["10_right", "7_left", "7_right"]
    assert "1 of 4 photographs cannot be used: 1 listed more than once (10_left)" in lines[0]


def test_an_image_that_is_listed_twice_gives_no_label(tmp_path):
    path = tmp_path / "train.csv"
    write_csv(path, ["id_code", "diagnosis"], [("a", 0), ("b", 2), ("a.png", 0)])
    labels, faults, rows = read_labels(path, LAYOUTS["aptos"][1][0])
    assert rows == 3
    assert [label.name for label in labels] == ["b"]
    assert [(fault.image, fault.kind) for fault in faults] == [("a", "listed more than once")]


def test_missing_and_unlabelled_files_are_counted_apart(kaggle, lines):
    (kaggle / "train" / "7_left.jpeg").unlink()
    write_images(kaggle / "train", ["1_left", "1_right", "2_left", "2_right"], ".jpeg")
    assert len(read_kaggle(kaggle, "skip", lines.append)) == 3
    assert (
        "5 of 8 photographs cannot be used: 1 missing (7_left), "
        "4 without a label (1_left, 1_right, 2_left, ...); left out"
    ) in lines[0]


def test_two_files_of_one_name_are_a_fault(kaggle, lines):
    write_images(kaggle / "train", ["7_left"], ".png")
    read_kaggle(kaggle, "skip", lines.append)
    assert "1 with two files (7_left: 7_left.jpeg and 7_left.png)" in lines[0]


def test_faults_of_all_photographs_are_fatal_even_if_faults_are_skipped(kaggle, lines):
    for path in (kaggle / "train").iterdir():
        path.unlink()
    with data_fails(kaggle, "4 of 4 photographs", "4 missing"):
        read_kaggle(kaggle, "skip", lines.append)


def test_wrong_cells_in_optional_columns_are_faults(tmp_path, lines):
    header = ["image", "level", "patient", "eye", "split"]
    rows = [
        ("a", 0, "p", "left", "train"),
        ("b", 0, "", "left", ""),
        ("c", 0, "p", "third", ""),
        ("d", 0, "p", "", "holdout"),
    ]
    write_csv(tmp_path / "labels.csv", header, rows)
    write_images(tmp_path / "images", "abcd", ".jpg")
    assert [row.name for row in read_folder(tmp_path, "skip", lines.append).rows] == ["a"]
    for words in ("without a patient (b)", "unknown eye (c: 'third')", "split (d: 'holdout')"):
        assert words in lines[0]


def test_a_table_without_its_columns_says_which_it_has(kaggle):
    write_csv(kaggle / "trainLabels.csv", ["image", "grade"], GRADES.items())
    with data_fails(kaggle / "trainLabels.csv", "column 'level'", "image, grade"):
        read_kaggle(kaggle)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe\x00image", "save it as CSV in UTF-8"),
        (b'image,level\n"a,1\n', "row 2 cannot be split into cells"),
        (b'image,level\n10_left,0\n"10_right,1\n7_left,4\n"7_right,2\n', "row 3 cannot be split"),
        (b"image,level\n10_left,0\n10_right\n", "row 3 has 1 fields, and the header 2"),
    ],
)
def test_what_is_no_csv_file_is_refused_in_one_line(kaggle, content, words):
    (kaggle / "trainLabels.csv").write_bytes(content)
    with data_fails(kaggle / "trainLabels.csv", words):
        read_kaggle(kaggle, "skip")


def test_two_columns_of_levels_are_refused(kaggle):
    write_csv(kaggle / "trainLabels.csv", ["image", "level", "Level "], [("10_left", 0, 4)])
    with data_fails(kaggle / "trainLabels.csv", "two columns 'level'"):
        read_kaggle(kaggle)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_levels_are_plain_numbers_and_names_stay_texts_in_any_table(tmp_path, separator):
    lines = ["sep=" + separator, separator.join(["image", "level"])]
    lines += [f"007{separator}2.0", f"1e5{separator} 1", f"10{separator}+3"]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    write_images(tmp_path / "images", ["007", "1e5", "10"], ".png")
    found = read_folder(tmp_path)
    assert [(row.name, row.grade) for row in found.rows] == [("007", 2), ("1e5", 1), ("10", 3)]


def test_the_number_of_rows_of_a_table_is_reported(kaggle, lines):
    read_kaggle(kaggle, report=lines.append)
    assert lines == [f"{kaggle / 'trainLabels.csv'}: 4 rows"]


def test_a_byte_order_mark_and_blank_lines_do_no_harm(kaggle):
    lines = "".join(f"{name},{grade}\r\n\r\n" for name, grade in GRADES.items())
    (kaggle / "trainLabels.csv").write_bytes(b"\xef\xbb\xbfimage,level\r\n" + lines.encode())
    assert len(read_kaggle(kaggle)) == 4


@pytest.mark.parametrize(
    ("dataset", "lacking"),
    [
        ("kaggle-eyepacs", ["trainLabels.csv"]),
        ("aptos", ["labels.csv", "train.csv", "retinopathy/APTOS"]),
        ("odir-other", ["labels.csv"]),
        ("eyepacs-subset", ["labels.csv"]),
        ("idrid", ["labels.csv"]),
    ],
)
def test_the_error_of_an_empty_folder_names_what_it_lacks(tmp_path, dataset, lacking):
    with data_fails(tmp_path, *lacking):
        load_photographs(dataset, tmp_path)
    with data_fails(tmp_path / "labels.csv"):
        load_photographs("folder", tmp_path)


def test_a_table_without_a_folder_of_images(tmp_path):
    write_csv(tmp_path / "train.csv", ["id_code", "diagnosis"], [("a", 0)])
    with data_fails(tmp_path, "1 missing"):
        load_photographs("aptos", tmp_path)


def test_all_but_the_synthetic_set_need_a_folder():
    for name in FUNDUS_DATASETS[1:]:
        with fails("dataset", name, DATA_VARIABLE):
            load_photographs(name)
    assert len(load_photographs("synthetic"))


def test_unknown_names_are_answered_with_the_known_ones(tmp_path):
    with fails("dataset", "eyepac", "synthetic, aptos,"):
        load_photographs("eyepac", tmp_path)
    with fails("on_fault", "stop", "skip"):
        load_photographs("aptos", tmp_path, on_fault="ignore")


def test_the_names_of_data_sets_are_read_without_anything_heavy():
    program = (
        "import sys; from vcl_radial.data.fundus import FUNDUS_DATASETS;"
        "assert not {'torch', 'numpy', 'pandas', 'PIL'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_frame_has_a_line_for_every_photograph(kaggle):
    frame = read_kaggle(kaggle).frame()
    columns = ["image", "patient", "eye", "grade", "site", "part", "path", "artefact"]
    assert list(frame.columns) == columns
    assert dict(zip(frame["image"], frame["grade"], strict=True)) == GRADES


def test_rows_are_taken_by_place_and_by_mask(kaggle):
    photographs = read_kaggle(kaggle)
    mask = photographs.referable.astype(bool)
    by_mask = photographs.select(mask)
    assert facts(by_mask) == facts(photographs.select(np.flatnonzero(mask)))
    assert facts(photographs.select([3, 0])) == [facts(photographs)[k] for k in (3, 0)]


def test_the_real_eyepacs_subset(retinopathy):
    photographs = load_photographs("eyepacs-subset", retinopathy.parent)
    assert len(photographs) == 6742
    assert np.bincount(photographs.grades).tolist() == [4913, 477, 1045, 173, 134]
    assert photographs.referable.sum() == 1352
    assert len(set(photographs.patients.tolist())) == 3372
    assert "research" in photographs.notice


def test_the_real_aptos(retinopathy):
    photographs = load_photographs("aptos", retinopathy.parent)
    assert np.bincount(photographs.grades).tolist() == [1805, 370, 999, 193, 295]
    # Nearly identical photographs are of one patient.
    patients, counts = np.unique(photographs.patients, return_counts=True)
    assert (len(patients), (counts > 1).sum(), counts[counts > 1].sum()) == (3523, 131, 270)
    assert "research" in photographs.notice


def test_the_real_odir(retinopathy):
    graded, other = (load_photographs(n, retinopathy.parent) for n in ("odir", "odir-other"))
    assert np.bincount(graded.grades).tolist() == [2873, 538, 946, 157, 29]
    assert len(other) == 1797
    assert set(other.referable.tolist()) == {-1}
    assert len({*graded.patients.tolist(), *other.patients.tolist()}) == 3336
    assert graded.notice == other.notice
    assert "research" in graded.notice


def test_the_real_idrid(retinopathy):
    photographs = load_photographs("idrid", retinopathy.parent)
    for part, counts in (("train", [134, 20, 136, 74, 49]), ("test", [34, 5, 32, 19, 13])):
        of_part = photographs.select([row.part == part for row in photographs.rows])
        assert np.bincount(of_part.grades).tolist() == counts
    assert "CC BY 4.0" in photographs.notice
