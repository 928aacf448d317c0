import os

import numpy as np
import pytest
import torch
from failing import fails, refuses

from vcl_radial.errors import DataError
from vcl_radial.tracks.regression import files
from vcl_radial.tracks.regression.data import Split, Standardiser
from vcl_radial.tracks.regression.data import load_data as load
from vcl_radial.tracks.regression.settings import DataSettings


def load_data(name, data_dir=None):
    return load(DataSettings(set=name), data_dir)


@pytest.fixture
def folder(tmp_path):
    """A set of six rows with two splits, in the published layout."""
    place = tmp_path / "uci" / "mine"
    place.mkdir(parents=True)
    np.savetxt(place / "data.txt", np.arange(24.0).reshape(6, 4))
    np.savetxt(place / "index_features.txt", [0, 2])
    np.savetxt(place / "index_target.txt", [3])
    for k, test in enumerate(([0, 1], [4, 5])):
        np.savetxt(place / f"index_train_{k}.txt", [r for r in range(6) if r not in test])
        np.savetxt(place / f"index_test_{k}.txt", test)
    return place


def test_a_folder_in_the_published_layout_is_read(folder):
    data = load_data("mine", folder.parents[1])
    assert data.x.tolist() == [[4.0 * r, 4.0 * r + 2] for r in range(6)]
    assert data.y.tolist() == [4.0 * r + 3 for r in range(6)]
    assert [split.test.tolist() for split in data.splits] == [[0, 1], [4, 5]]
    assert data.splits[0].train.tolist() == [2, 3, 4, 5]
    assert data.hidden == 50
    (folder / "n_hidden.txt").write_text("100\n")
    assert load_data("mine", folder.parents[1]).hidden == 100


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("data.txt", None, ""),
        ("data.txt", "1 2\n3 x\n", "x"),
        ("data.txt", "", ""),
        ("data.txt", "0 1 2 nan\n" * 6, "finite"),
        ("index_test_0.txt", "0\n6\n", "rows from 0 to 5"),
        ("index_test_0.txt", "0\n0\n", "once"),
        ("index_test_0.txt", "0.5\n", ""),
        ("index_train_0.txt", "0\n2\n", "row 0"),
        ("index_test_1.txt", None, ""),
        ("index_target.txt", "2\n", "feature"),
        ("index_features.txt", "7\n", "columns from 0 to 3"),
        ("index_train_0.txt", None, ""),
        ("n_hidden.txt", "0\n", ""),
        ("n_hidden.txt", "50 60\n", ""),
    ],
)
def test_a_damaged_folder_is_refused_by_the_name_of_its_file(folder, file, content, named):
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises(DataError, match=f"{file}: .*{named}") as error:
        load_data("mine", folder.parents[1])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("file", ["data.txt", "index_train_1.txt"])
def test_a_pipe_in_place_of_a_file_is_refused_at_once(folder, file):
    (folder / file).unlink()
    os.mkfifo(folder / file)
    with pytest.raises(DataError, match=f"{file}: .*pipe"):
        load_data("mine", folder.parents[1])


def test_a_set_that_is_nowhere_is_refused(tmp_path):
    with refuses("bostonHousing", kind=DataError):
        load_data("boston", tmp_path)
    with refuses("--data-dir"):
        load_data("boston")


def test_a_checksum_is_that_of_the_bytes_wherever_the_folder_lies(folder, tmp_path):
    mine = DataSettings(set="mine")
    before, moved = files.checksum(mine, tmp_path), tmp_path / "data"
    moved.mkdir()
    folder.parent.rename(moved / "uci")
    assert files.checksum(mine, moved) == before
    (moved / "uci" / "mine" / "index_test_0.txt").write_text("1\n0\n")
    assert files.checksum(mine, moved) != before


def test_diabetes_needs_no_files_and_its_splits_divide_the_rows():
    data = load_data("diabetes")
    assert data.x.shape == (442, 10)
    assert len(data.splits) == 20
    for split in data.splits:
        assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(442))
    assert len({tuple(split.test.tolist()) for split in data.splits}) == 20


def test_the_nine_sets_have_the_published_sizes(real_data):
    sizes = {
        "boston": (506, 13, 20, 50),
        "concrete": (1030, 8, 20, 50),
        "energy": (768, 8, 20, 50),
        "kin8nm": (8192, 8, 20, 50),
        "naval": (11934, 16, 20, 50),
        "power": (9568, 4, 20, 50),
        "protein": (45730, 9, 5, 100),
        "wine": (1599, 11, 20, 50),
        "yacht": (308, 6, 20, 50),
    }
    assert sizes.keys() == files.FOLDERS.keys()
    for name, (*_, splits, _) in sizes.items():
        assert files.PUBLISHED_SPLITS[name] == splits
        folder = files.set_folder(name, real_data)
        assert len([*folder.glob("index_train_*.txt")]) == splits
    for name in ("boston", "energy", "yacht"):  # the large ones take seconds to parse
        data = load_data(name)
        assert (*data.x.shape, len(data.splits), data.hidden) == sizes[name]
        for split in data.splits:
            assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(len(data.y)))


def test_standardising_there_and_back_is_the_identity_and_its_moments_are_those_of_training():
    torch.manual_seed(0)
    x, y = torch.randn(50, 4).double() * 9 + 100, torch.randn(50).double() * 1e-3 + 7
    scaler = Standardiser.of(x, y)
    z, t = scaler.inputs(x), scaler.targets(y)
    torch.testing.assert_close(z.mean(0), torch.zeros(4).double(), atol=1e-12, rtol=0)
    torch.testing.assert_close(z.std(0, correction=0), torch.ones(4).double())
    torch.testing.assert_close(t.std(correction=0), torch.tensor(1.0).double())
    torch.testing.assert_close(scaler.original_targets(t), y, atol=1e-13, rtol=0)
    other = torch.tensor([6.5, 8.0]).double()
    torch.testing.assert_close(scaler.original_targets(scaler.targets(other)), other)


def test_a_constant_column_becomes_zeros_even_when_its_mean_is_rounded():
    x = torch.full((7, 1), 0.1, dtype=torch.float64)
    x = torch.cat([x, torch.arange(7.0).double()[:, None]], dim=1)
    z = Standardiser.of(x, x[:, 1]).inputs(x)
    assert z[:, 0].abs().max() < 1e-12
    assert torch.isfinite(z).all()


def test_validation_rows_come_from_the_training_rows_alone_and_divide_them():
    split = Split(torch.arange(10, 60), torch.arange(10))
    part = split.validation(0.2, seed=3)
    assert len(part.test) == 10
    assert sorted([*part.train.tolist(), *part.test.tolist()]) == list(range(10, 60))
    assert split.validation(0.2, seed=3).test.tolist() == part.test.tolist()
    assert split.validation(0.2, seed=4).test.tolist() != part.test.tolist()
    with fails("validation"):
        split.validation(0.001, seed=0)
