"""CIFAR-10, from small files in the layouts of the official files and of the copy as JPEG."""

import io
import tarfile

import numpy as np
import pytest
from failing import data_fails, fails
from PIL import Image

from vcl_radial.data.data_files import CIFAR10_FILES, folder_name
from vcl_radial.data.streams import checksum, cifar, load_dataset
from vcl_radial.runs.planning import plan


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def binary(folder, rows=20):
    """Row r of a file is of class r % 10; its red, green and blue are r, r + 1 and r + 2."""
    folder = folder / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for number, name in enumerate(CIFAR10_FILES):
        at = np.arange(rows, dtype=np.uint8)
        planes = (at[:, None] + np.arange(3, dtype=np.uint8) + 20 * number).repeat(1024, 1)
        (folder / name).write_bytes(np.c_[at % 10, planes].astype(np.uint8).tobytes())
    return folder


def archive(folder, train=2, test=1, left_out=None):
    """Images of one grey level each, packed in an order that is not theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / "cifar10-jpeg.tar.xz", "w:xz") as tar:
        for part, count in (("test", test), ("train", train)):
            for number, label in enumerate(reversed(cifar.CLASSES)):
                for image in range(count):
                    name = f"./{part}/{label}/{image:04}.jpg"
                    if name == left_out:
                        continue
                    grey = 100 * (part == "test") + 10 * (9 - number) + image
                    content = io.BytesIO()
                    Image.new("RGB", (32, 32), (grey,) * 3).save(content, "JPEG", quality=95)
                    member = tarfile.TarInfo(name)
                    member.size = len(content.getvalue())
                    tar.addfile(member, io.BytesIO(content.getvalue()))
    return folder


@pytest.fixture
def _small(monkeypatch):
    monkeypatch.setattr(cifar, "TRAIN", 2)
    monkeypatch.setattr(cifar, "TEST", 1)


def test_the_official_files_are_five_of_training_and_one_of_test(tmp_path):
    binary(tmp_path)
    data = load_dataset("cifar10", tmp_path)
    assert data.train_x.shape == (100, 3, 32, 32)
    assert data.train_x[21, :, 5, 7].tolist() == [21, 22, 23]  # row 1 of the second file
    assert data.test_x[3, :, 0, 0].tolist() == [103, 104, 105]
    assert data.train_y.tolist() == [*range(10)] * 10
    assert data.class_names[:2] == ("airplane", "automobile")


@pytest.mark.usefixtures("_small")
def test_images_of_the_archive_are_in_the_order_of_classes_and_names(tmp_path):
    data = load_dataset("cifar10", archive(tmp_path))
    assert data.train_x[:, 0, 9, 9].tolist() == [10 * c + i for c in range(10) for i in (0, 1)]
    assert data.test_x[:, 2, 0, 0].tolist() == [100 + 10 * c for c in range(10)]
    assert data.train_y.tolist() == [c for c in range(10) for _ in (0, 1)]
    again = load_dataset("cifar10", tmp_path)
    assert again.checksum == data.checksum


@pytest.mark.usefixtures("_small")
def test_a_run_tells_the_copy_from_the_official_files(tmp_path):
    archive(tmp_path / "copy")
    binary(tmp_path / "official")
    (run,) = plan("split-fashion-single-head", ["naive"], [0], {"stream.dataset": "cifar10"})
    copy, official = (run.on_data(tmp_path / name) for name in ("copy", "official"))
    assert copy.stream.data_name == "a JPEG copy"
    assert official.stream.data_name is None
    assert copy.digest() != official.digest()
    assert official.stream.checksum == checksum("cifar10", tmp_path / "official")


def test_official_files_go_before_the_copy(tmp_path):
    archive(tmp_path)
    binary(tmp_path)
    assert folder_name("cifar10", tmp_path) is None
    assert load_dataset("cifar10", tmp_path).train_x.max() == 19 + 2 + 80


def test_without_a_folder_the_files_are_named():
    with fails("dataset", "cifar-10-batches-bin", "cifar10-jpeg.tar.xz"):
        load_dataset("cifar10")


def test_what_is_missing_is_named(tmp_path):
    with data_fails(tmp_path, "cifar-10-batches-bin", "cifar10-jpeg.tar.xz"):
        load_dataset("cifar10", tmp_path)
    folder = binary(tmp_path)
    (folder / "data_batch_3.bin").unlink()
    with data_fails(folder, "data_batch_3.bin"):
        load_dataset("cifar10", tmp_path)


@pytest.mark.parametrize("content", [b"", bytes(3072), bytes(3074), b"\x0a" + bytes(3072)])
def test_a_damaged_file_is_named(tmp_path, content):
    path = binary(tmp_path) / "test_batch.bin"
    path.write_bytes(content)
    with data_fails(path):
        load_dataset("cifar10", tmp_path)


@pytest.mark.usefixtures("_small")
def test_a_damaged_archive_is_named(tmp_path):
    path = archive(tmp_path, left_out="./train/ship/0001.jpg") / "cifar10-jpeg.tar.xz"
    with data_fails(path, "train/ship"):
        load_dataset("cifar10", tmp_path)
    path.write_bytes(path.read_bytes()[:500])
    with data_fails(path):
        load_dataset("cifar10", tmp_path)
    path.write_text("no archive")
    with data_fails(path):
        load_dataset("cifar10", tmp_path)


def test_the_copy_is_whole(real_data):
    data = load_dataset("cifar10", real_data)
    assert data.train_x.shape == (50_000, 3, 32, 32)
    assert data.test_y.bincount().tolist() == [1000] * 10
    mean = data.train_x.double().mean((0, 2, 3)) / 255
    assert np.allclose(mean, [0.4914, 0.4822, 0.4465], atol=2e-3)  # as published
