import pickle
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from vcl_radial.data.fundus import load_photographs, published_split, read_medmnist
from vcl_radial.errors import DataError

COUNTS = {"train": 9, "val": 2, "test": 4}


def arrays():
    rng = np.random.default_rng(0)
    made = {}
    for key, count in COUNTS.items():
        made[f"{key}_images"] = rng.integers(0, 256, (count, 28, 28, 3), dtype=np.uint8)
        made[f"{key}_labels"] = (np.arange(count) % 5).astype(np.uint8)[:, None]
    return made


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "retinamnist.npz", **arrays())
    return tmp_path / "retinamnist.npz"


def test_every_array_becomes_rows_with_their_pictures(npz):
    photographs = read_medmnist(npz)
    assert len(photographs) == 15
    expected = arrays()
    for row in photographs.rows:
        key = {"validation": "val"}.get(row.part, row.part)
        place = int(row.name.rsplit("_", 1)[1])
        assert row.grade == expected[f"{key}_labels"][place, 0]
        picture = photographs.reader.read(row, 28)
        assert np.array_equal(np.asarray(picture), expected[f"{key}_images"][place])
        assert isinstance(picture, Image.Image)


def test_its_own_split_is_kept(npz):
    split = published_split(read_medmnist(npz))
    assert [len(part) for part in (split.train, split.validation, split.test)] == [9, 2, 4]


def test_it_is_found_in_a_folder_or_named_itself(npz):
    by_folder = load_photographs("retinamnist", npz.parent)
    by_file = load_photographs("retinamnist", npz)
    assert by_folder.rows == by_file.rows
    np.savez(npz.parent / "retinamnist_64.npz", **arrays())
    with pytest.raises(DataError, match=r"holds retinamnist.npz, retinamnist_64.npz; name one"):
        load_photographs("retinamnist", npz.parent)


def test_grades_that_are_none_are_faults(npz, told):
    broken = arrays()
    broken["test_labels"][1] = 9
    np.savez(npz, **broken)
    with pytest.raises(DataError, match=r"1 of 15 .* outside 0 to 4 \(test_0001: 9\)"):
        read_medmnist(npz)
    photographs = read_medmnist(npz, "skip", told.append)
    assert len(photographs) == 14
    last = photographs.rows[-1]
    picture = photographs.reader.read(last, 28)
    assert np.array_equal(np.asarray(picture), broken["test_images"][3])


def saved(**changes):
    """Writes the file with other arrays; None leaves one out."""
    made = {name: array for name, array in (arrays() | changes).items() if array is not None}
    return lambda npz: np.savez(npz, **made)


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (saved(val_labels=None), "lacks val_labels"),
        (saved(val_labels=np.zeros((5, 1), np.uint8)), "has 5 labels for 2 val images"),
        (saved(val_images=np.zeros((2, 28, 28), np.uint8)), r"val_images is uint8 \[2, 28, 28\]"),
        (saved(val_labels=np.array([{}, {}], object)), "is damaged or no .npz file"),
        (lambda npz: npz.write_bytes(npz.read_bytes()[:500]), "is damaged or no .npz file"),
        (lambda npz: npz.write_bytes(pickle.dumps({"a": 1})), "is damaged or no .npz file"),
    ],
)
def test_another_or_damaged_file_is_refused_and_never_unpickled(npz, breaks, words):
    breaks(npz)
    with pytest.raises(DataError, match=words) as refused:
        read_medmnist(npz)
    assert "\n" not in str(refused.value)


def test_a_flipped_bit_of_a_compressed_file_is_a_fault_of_the_data_or_harmless(npz):
    rng = np.random.default_rng(0)
    np.savez_compressed(npz, **arrays())
    whole = npz.read_bytes()
    directory = whole.find(b"PK\x01\x02")
    # The compressed pixels, and what says how they are compressed.
    places = [*rng.integers(len(whole), size=60), *range(directory, directory + 46)]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        npz.write_bytes(damaged)
        with suppress(DataError):
            read_medmnist(npz, "skip", lambda _: None)
