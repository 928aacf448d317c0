import gzip

import pytest
import torch
from failing import refuses

from vcl_radial.errors import DataError, UserError
from vcl_radial.tracks.bandits.data import load_table
from vcl_radial.tracks.bandits.files import FILES


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
    (data_dir / "bandits" / FILES[name]).unlink()
    assert f"bandits/{FILES[name]}: " in fault(name, data_dir)


@pytest.mark.parametrize("name", list(FILES))
def test_a_file_cut_off_anywhere_is_a_fault_in_one_line(name, data_dir):
    path = data_dir / "bandits" / FILES[name]
    whole = path.read_bytes()
    for end in range(0, len(whole), max(1, len(whole) // 25)):
        path.write_bytes(whole[:end])
        assert str(path) in fault(name, data_dir)


@pytest.mark.parametrize("name", list(FILES))
def test_flipped_bytes_are_a_fault_in_one_line(name, data_dir):
    path = data_dir / "bandits" / FILES[name]
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
    ],
)
def test_what_is_wrong_in_a_table_is_said(name, old, new, named, data_dir):
    path = data_dir / "bandits" / FILES[name]
    text = gzip.decompress(path.read_bytes()).decode()
    assert old in text
    path.write_bytes(gzip.compress(text.replace(old, new).encode()))
    assert named in fault(name, data_dir)


def test_a_table_without_rows_is_said(data_dir):
    path = data_dir / "bandits" / "mushroom.csv.gz"
    path.write_bytes(gzip.compress(b"edibility,odor\n"))
    with refuses("mushroom", kind=DataError):
        load_table("mushroom", data_dir)
