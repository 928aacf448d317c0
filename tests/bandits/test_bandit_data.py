import gzip
import io

import numpy as np
import pytest
import torch
from failing import data_fails, refuses

from vcl_radial.errors import DataError, UserError
from vcl_radial.tracks.bandits.data import load_table
from vcl_radial.tracks.bandits.files import FILES, path_of

NEW = ["financial", "jester", "covertype", "census"]


def test_words_become_one_hot_columns_and_the_label_is_not_among_them(data_dir):
    table = load_table("mushroom", data_dir)
    assert table.contexts.shape == (300, 3 + 3 + 2)
    # One column of each attribute is 1.
    assert torch.equal(table.contexts.sum(1), torch.full((300,), 3.0))
    assert table.actions == 2
    assert set(table.labels.tolist()) == {0, 1}


def test_the_shuttles_training_rows_are_standardised(data_dir):
    table = load_table("statlog", data_dir)
    assert table.contexts.shape == (150, 9)
    torch.testing.assert_close(table.contexts.mean(0), torch.zeros(9), atol=1e-6, rtol=0)
    torch.testing.assert_close(table.contexts.std(0, correction=0), torch.ones(9))
    assert table.actions == 7
    # The first feature was made seven times the class.
    order = table.contexts[:, 0].argsort(stable=True)
    assert torch.equal(table.labels[order], table.labels.sort().values)


def test_adults_with_a_missing_value_are_left_out(data_dir):
    table = load_table("adult", data_dir)
    assert len(table.contexts) == 189
    assert table.rows == 210
    assert table.actions == 14
    assert bool(torch.isfinite(table.contexts).all())  # constant columns too


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [
        ("mushroom", (8124, 117), {0: 4208, 1: 3916}),
        ("statlog", (43500, 9), {0: 34108, 1: 37, 6: 11}),
        ("adult", (45222, 92), {}),
    ],
)
def test_the_published_sets_have_the_published_sizes(name, shape, counts, real_data):
    table = load_table(name)
    assert table.contexts.shape == shape
    found = torch.bincount(table.labels, minlength=table.actions)
    assert bool((found > 0).all())
    for label, count in counts.items():
        assert int(found[label]) == count


def fault(name, data_dir):
    """The line that a table is refused by."""
    with pytest.raises(UserError) as caught:
        load_table(name, data_dir)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("name", list(FILES))
def test_a_set_that_is_not_there_is_named_with_its_path(name, data_dir, tmp_path):
    assert "--data-dir" in fault(name, None)
    assert str(tmp_path / "none") in fault(name, tmp_path / "none")
    path_of(name, data_dir).unlink()
    assert f"bandits/{FILES[name]}: " in fault(name, data_dir)


@pytest.mark.parametrize("name", list(FILES))
def test_a_file_cut_off_anywhere_is_a_fault_in_one_line(name, data_dir):
    path = path_of(name, data_dir)
    whole = path.read_bytes()
    for end in range(0, len(whole), max(1, len(whole) // 25)):
        path.write_bytes(whole[:end])
        assert str(path) in fault(name, data_dir)


@pytest.mark.parametrize("name", list(FILES))
def test_flipped_bytes_are_a_fault_in_one_line(name, data_dir):
    path = path_of(name, data_dir)
    whole = path.read_bytes()
    for place in [0, 1, 2, *range(12, len(whole), max(1, len(whole) // 25))]:
        altered = bytearray(whole)
        altered[place] ^= 0xFF
        path.write_bytes(altered)
        assert str(path) in fault(name, data_dir)


@pytest.mark.parametrize(
    ("name", "old", "new", "named"),
    [
        ("mushroom", "edibility", "edible", "'edibility'"),
        ("mushroom", "\np,", "\nq,", "'q'"),
        ("statlog", ",train\n", ",trial\n", "'train'"),
        ("statlog", "\n7,", "\nseven,", "'seven'"),
        ("adult", "Job-A", "Job-B", "13 occupations"),
        ("adult", "fnlwgt", "weight", "'fnlwgt'"),
        ("financial", " s20", " s20\n1.0 2.0", "21"),
        ("financial", "e+00 ", "e+99 ", "finite"),
        ("covertype", ",7\n", ",8\n", "7 classes"),
        ("covertype", ",7\n", ",\n", "missing"),
        ("census", "caseid", "person", "'caseid'"),
        ("census", ",dOccup", ",dOccup,dOccup", "two columns 'dOccup'"),
        ("census", "d32\n", "d32\n1,2\n", "cannot be read"),
        ("census", "\n10007,", "\n10007,999", "cannot be read"),
        ("census", "\n10007,", "\n10007,many", "cannot be read"),
    ],
)
def test_what_is_wrong_in_a_table_is_said(name, old, new, named, data_dir):
    path = path_of(name, data_dir)
    text = gzip.decompress(path.read_bytes()).decode()
    assert old in text
    path.write_bytes(gzip.compress(text.replace(old, new).encode()))
    assert named in fault(name, data_dir)


def test_a_table_without_rows_is_said(data_dir):
    path = data_dir / "bandits" / "mushroom.csv.gz"
    path.write_bytes(gzip.compress(b"edibility,odor\n"))
    with refuses("mushroom", kind=DataError):
        load_table("mushroom", data_dir)


@pytest.mark.parametrize("name", NEW)
def test_a_published_file_may_be_compressed_or_not(name, data_dir):
    path = path_of(name, data_dir)
    compressed = load_table(name, data_dir)
    path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    path.unlink()
    plain = load_table(name, data_dir)
    assert torch.equal(plain.contexts, compressed.contexts)
    assert torch.equal(plain.labels, compressed.labels)
    assert plain.rows == len(plain.contexts)


def test_the_forests_columns_are_standardised_and_the_last_one_is_the_label(data_dir):
    table = load_table("covertype", data_dir)
    assert table.contexts.shape == (200, 54)
    torch.testing.assert_close(table.contexts.mean(0), torch.zeros(54), atol=1e-5, rtol=0)
    assert table.labels[:8].tolist() == [0, 1, 2, 3, 4, 5, 6, 0]


def test_a_code_of_the_census_is_a_standardised_column_and_the_case_is_none(data_dir):
    table = load_table("census", data_dir)
    contexts = table.encode(table.contexts)
    assert contexts.shape == (180, 3 * 67)
    torch.testing.assert_close(contexts.mean(0), torch.zeros(201), atol=1e-5, rtol=0)
    torch.testing.assert_close(contexts.std(0, correction=0), torch.ones(201))
    assert table.labels[:10].tolist() == [*range(9), 0]
    # Of three codes of a column, one holds: two numbers are negative and one is not.
    assert bool(((contexts > 0).view(180, 67, 3).sum(2) == 1).all())


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((5, 39)),
        np.full((5, 40), 99.0),
        np.full((5, 40), np.nan),
        np.zeros(40),
        np.full((5, 40), "joke"),
        np.full((5, 40), None),
    ],
)
def test_another_array_than_the_jokes_is_refused(array, data_dir):
    path = path_of("jester", data_dir)
    content = io.BytesIO()
    np.save(content, array)
    path.write_bytes(gzip.compress(content.getvalue()))
    with data_fails(path):
        load_table("jester", data_dir)
