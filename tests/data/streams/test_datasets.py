import gzip
import shutil
from pathlib import Path

import pytest
import torch
from failing import data_fails
from idx_files import write_idx

from vcl_radial.data.data_files import IDX_NAMES
from vcl_radial.data.streams import ImageData, checksum, load_dataset


@pytest.mark.parametrize(
    ("name", "train", "test", "first", "mean", "std"),
    [
        ("fashion-mnist", 60_000, 10_000, [9, 0, 0, 3, 0, 2, 7, 2, 5, 5], 0.28604, 0.35302),
        ("mnist", 60_000, 10_000, [5, 0, 4, 1, 9, 2, 1, 3, 1, 4], 0.13066, 0.30811),
        ("notmnist-small", 15_604, 3_120, [4, 5, 7, 1, 5, 2, 3, 3, 6, 8], 0.42541, 0.45860),
    ],
)
def test_the_published_sets_have_their_known_labels_and_moments(
    real_data: Path,
    name: str,
    train: int,
    test: int,
    first: list[int],
    mean: float,
    std: float,
) -> None:
    data = load_dataset(name, real_data)
    assert data.train_x.shape == (train, 28, 28)
    assert data.test_x.shape == (test, 28, 28)
    assert data.train_y[:10].tolist() == first
    pixels = data.train_x.double() / 255
    assert pixels.mean().item() == pytest.approx(mean, abs=5e-6)
    assert pixels.std().item() == pytest.approx(std, abs=5e-6)


def test_fashion_mnist_has_6000_and_1000_images_of_each_class(real_data: Path) -> None:
    data = load_dataset("fashion-mnist", real_data)
    assert data.train_y.bincount().tolist() == [6_000] * 10
    assert data.test_y.bincount().tolist() == [1_000] * 10
    assert data.class_names[0] == "T-shirt/top"
    assert data.class_names[9] == "Ankle boot"


def test_extracted_files_alone_are_read_and_checked(real_data: Path, tmp_path: Path) -> None:
    for path in (real_data / "FashionMNIST" / "raw").glob("*.gz"):
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    data = load_dataset("fashion-mnist", tmp_path)
    assert data.test_y.bincount().tolist() == [1_000] * 10

    labels = tmp_path / IDX_NAMES[3]
    contents = bytearray(labels.read_bytes())
    contents[-1] ^= 1
    labels.write_bytes(contents)
    with data_fails(labels, "published"):
        load_dataset("fashion-mnist", tmp_path)


def test_one_published_set_in_place_of_another_is_reported(real_data: Path, tmp_path: Path) -> None:
    shutil.copytree(real_data / "MNIST" / "raw", tmp_path / "raw")
    with data_fails(tmp_path / "raw" / f"{IDX_NAMES[0]}.gz", "published"):
        load_dataset("fashion-mnist", tmp_path)


def test_digits_are_split_80_to_20_within_each_class_without_overlap() -> None:
    data = load_dataset("digits")
    assert len(data.train_x) + len(data.test_x) == 1_797
    assert data.train_x.shape[1:] == data.test_x.shape[1:] == (8, 8)
    of_class, tests = data.train_y.bincount() + data.test_y.bincount(), data.test_y.bincount()
    assert torch.equal(tests, of_class // 5)
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    original = torch.from_numpy(sklearn_datasets.load_digits().images).to(torch.uint8)
    ours = torch.cat([data.train_x, data.test_x]).flatten(1)
    assert sorted(ours.tolist()) == sorted(original.flatten(1).tolist())


def test_digits_are_the_same_whatever_the_global_seed() -> None:
    torch.manual_seed(1)
    first = load_dataset("digits")
    torch.manual_seed(2)
    second = load_dataset("digits")
    assert torch.equal(first.train_x, second.train_x)
    assert torch.equal(first.test_y, second.test_y)


def test_a_users_folder_is_read_as_it_was_written(idx_folder: Path, tiny: ImageData) -> None:
    data = load_dataset("idx-folder", idx_folder)
    assert torch.equal(data.train_x, tiny.train_x)
    assert torch.equal(data.train_y, tiny.train_y)
    assert torch.equal(data.test_x, tiny.test_x)
    assert torch.equal(data.test_y, tiny.test_y)
    assert data.n_classes == 10


def test_a_users_read_only_folder_stays_as_it_was(idx_folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in idx_folder.rglob("*")}
    idx_folder.chmod(0o555)
    load_dataset("idx-folder", idx_folder)
    assert {path: path.stat().st_mtime_ns for path in idx_folder.rglob("*")} == before
    idx_folder.chmod(0o755)


def test_the_checksum_of_a_users_data_depends_on_their_content_alone(
    idx_folder: Path, tiny: ImageData, tmp_path: Path
) -> None:
    assert checksum("fashion-mnist", idx_folder) is None
    moved, other = tmp_path / "moved", tmp_path / "other"
    for folder in (moved, other):
        shutil.copytree(idx_folder, folder)
    for path in moved.rglob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    images = next(other.rglob(f"{IDX_NAMES[2]}*"))
    write_idx(images, tiny.test_x + 1)
    first = checksum("idx-folder", idx_folder)
    assert checksum("idx-folder", moved) == first
    assert checksum("idx-folder", other) != first


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        (1, lambda y: y[:-3], f"{IDX_NAMES[1]}.gz [197]"),
        (3, lambda y: y + 1, "class 10 "),
        (1, lambda y: torch.where(y == 4, 5, y), "class 4 "),
        (2, lambda x: x[:, :, :2], f"{IDX_NAMES[2]}.gz of [4, 2"),
    ],
)
def test_files_of_a_user_that_do_not_fit_each_other_are_reported(
    idx_folder: Path, tiny: ImageData, part: int, change, words: str
) -> None:
    values = (tiny.train_x, tiny.train_y, tiny.test_x, tiny.test_y)[part]
    write_idx(idx_folder / f"{IDX_NAMES[part]}.gz", change(values))
    with data_fails(idx_folder, words):
        load_dataset("idx-folder", idx_folder)
