"""The layout of a user's data folder, before anything is read."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest
from failing import data_fails, fails

from vcl_radial.data.data_files import (
    DATA_VARIABLE,
    IDX_NAMES,
    files_checksum,
    folder_name,
    image_files,
    published_files,
    user_images,
)
from vcl_radial.data.streams import load_dataset
from vcl_radial.runs import planning


def lay_out(root: Path, *names: str) -> Path:
    """Empty files; those whose names end in `/` are folders."""
    for name in names:
        path = root / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.touch()
    return root


def ten_of_each(root: Path, *classes: str) -> Path:
    return lay_out(root, *(f"{name}/{k}.png" for name in classes for k in range(10)))


def test_a_checksum_is_of_names_and_decompressed_contents(tmp_path):
    content = bytes(range(256)) * 10_000
    plain, packed = tmp_path / "a.txt", tmp_path / "b.csv.gz"
    plain.write_bytes(content)
    packed.write_bytes(whole := gzip.compress(content))
    expected = hashlib.sha256(b"a.txt\0" + content + b"b.csv.gz\0" + content)
    assert files_checksum([plain, packed]) == expected.hexdigest()[:16]
    packed.write_bytes(whole[:-4])
    with data_fails(packed):
        files_checksum([plain, packed])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "not a regular file"),
        (os.mkdir, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: None, "there is no such file"),
    ],
)
def test_a_checksum_is_of_regular_files(tmp_path, make, words):
    path = tmp_path / "t.csv"
    make(path)
    with data_fails(path, words):
        files_checksum([path])


def test_class_folders_of_train_and_test_are_the_classes_by_name(tmp_path):
    lay_out(
        tmp_path,
        *("train/dog/b.png", "train/dog/a.JPG", "train/Cat/1.webp", "train/dog/more/c.bmp"),
        *("test/dog/9.png", "test/Cat/8.png"),
    )
    files = image_files(tmp_path)
    assert files.class_names == ("Cat", "dog")
    assert [[path.name for path in images] for images in files.train] == [
        ["1.webp"],
        ["a.JPG", "b.png", "c.bmp"],
    ]
    assert [[path.name for path in images] for images in files.test] == [["8.png"], ["9.png"]]
    assert len(files) == 6


def test_a_folder_of_classes_is_split_by_the_share_within_each_class(tmp_path):
    files = image_files(ten_of_each(tmp_path, "a", "b"), test_share=0.3)
    for name, train, test in zip(("a", "b"), files.train, files.test, strict=True):
        assert (len(train), len(test)) == (7, 3)
        assert sorted(train + test) == sorted((tmp_path / name).iterdir())


def test_the_split_depends_on_the_seed_and_not_on_other_classes(tmp_path):
    ten_of_each(tmp_path, "a", "b")
    first = image_files(tmp_path, seed=1)
    assert first == image_files(tmp_path, seed=1)
    assert first.test != image_files(tmp_path, seed=2).test
    ten_of_each(tmp_path, "Aardvark")
    assert image_files(tmp_path, seed=1).test[1:] == first.test


def test_every_class_keeps_an_image_on_both_sides_whatever_the_share(tmp_path):
    ten_of_each(tmp_path, "a", "b")
    for share, n in ((0.001, 1), (0.999, 9)):
        assert [len(t) for t in image_files(tmp_path, test_share=share).test] == [n, n]


def test_hidden_files_do_not_count_and_files_of_another_kind_are_left_out(tmp_path):
    ten_of_each(tmp_path, "a", "b")
    lay_out(tmp_path, "a/notes.txt", "a/.hidden.png", ".git/x.png", "__MACOSX/a.png", "README")
    files = image_files(tmp_path)
    assert files.class_names == ("a", "b")
    assert len(files) == 20
    assert files.left_out == (tmp_path / "a" / "notes.txt",)


def test_a_class_may_be_called_train(tmp_path):
    assert image_files(ten_of_each(tmp_path, "bus", "train")).class_names == ("bus", "train")


@pytest.mark.parametrize(
    ("names", "folder", "named"),
    [
        ((), "", "class folder"),
        (("1.png", "2.png"), "", "2 images, but no class folder"),
        ((f"raw/{IDX_NAMES[0]}.gz",), "", "--set stream.dataset=idx-folder"),
        (("a/1.png", "a/2.png"), "", "one class only, a"),
        (("a/", "b/notes.txt"), "", ".jpg, .jpeg, .png"),
        (("a/1.png", "a/2.png", "b/"), "b", "no image"),
        (("a/1.png", "b/1.png", "b/2.png"), "a", "1.png"),
        (("train/a/1.png", "train/b/1.png"), "", "no test"),
        (("train/", "test/a/1.png", "test/b/1.png"), "", "mine/train/CLASS/"),
        (("train/1.png", "test/1.png"), "train", "1 images, but no class folder"),
        (
            ("train/a/1.png", "train/b/1.png", "test/a/1.png", "test/b/1.png", "test/c/1.png"),
            "test/c",
            "mine/train/c",
        ),
        (
            ("train/a/1.png", "train/b/1.png", "train/c/1.png", "test/a/1.png", "test/c/1.png"),
            "train/b",
            "mine/test/b",
        ),
        (("train/a/1.png", "train/b/1.png", "test/a/", "test/b/1.png"), "test/a", "no image"),
    ],
)
def test_a_folder_that_is_not_laid_out_as_it_has_to_be_is_reported(tmp_path, names, folder, named):
    root = tmp_path / "mine"
    root.mkdir()
    lay_out(root, *names)
    with data_fails(root / folder, named):
        user_images(root)


def test_a_folder_of_the_variable_that_is_no_image_folder_is_to_be_named(tmp_path, monkeypatch):
    lay_out(tmp_path, "a/1.png", "a/2.png", "FashionMNIST/raw/x.gz")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (run,) = planning.plan("image-folder-multi-head", ["naive"], [0])
    for checked in (lambda: user_images(None), lambda: run.on_data(None)):
        with data_fails(tmp_path / "FashionMNIST", DATA_VARIABLE, "--data-dir"):
            checked()
    with data_fails(tmp_path / "FashionMNIST", f"move it out of {tmp_path}"):
        user_images(tmp_path)


def test_a_folder_of_the_variable_that_holds_no_table_is_to_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (run,) = planning.plan("retinopathy-synthetic", ["naive"], [0], {"data.dataset": "folder"})
    with data_fails(tmp_path / "labels.csv", tmp_path, "--data-dir"):
        run.on_data(None)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_must_not_be_read_is_reported(tmp_path):
    ten_of_each(tmp_path, "a", "b")
    (tmp_path / "b").chmod(0)
    with data_fails(tmp_path / "b", "Permission denied"):
        image_files(tmp_path)
    (tmp_path / "b").chmod(0o755)


@pytest.mark.parametrize(
    ("dataset", "words"),
    [("image-folder", "train/CLASS/"), ("idx-folder", "train-images-idx3-ubyte.gz, ")],
)
def test_data_of_a_folder_need_one(dataset, words, tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with fails("dataset", words, "--data-dir", DATA_VARIABLE):
        load_dataset(dataset)
    with fails(tmp_path / "absent", "not a folder"):
        load_dataset(dataset, tmp_path / "absent")


def test_idx_files_that_are_missing_are_named_with_the_folder_that_was_given(tmp_path):
    with data_fails(tmp_path, *IDX_NAMES, "--data-dir"):
        load_dataset("idx-folder", tmp_path)


def test_published_data_are_missed_in_a_folder_that_was_given_only(tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert published_files("mnist", None) is None  # they will be downloaded
    with data_fails(tmp_path / "MNIST/raw", *IDX_NAMES, "published"):
        published_files("mnist", tmp_path)


def test_data_without_a_licence_are_never_downloaded(tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with fails("dataset", f"{IDX_NAMES[3]}.gz", "notMNIST-small/raw", DATA_VARIABLE):
        published_files("notmnist-small", None)
    with data_fails(tmp_path / "notMNIST-small/raw"):
        published_files("notmnist-small", tmp_path)


def test_data_of_a_folder_are_named_after_it(tmp_path, monkeypatch):
    assert folder_name("mnist", tmp_path) is None
    assert folder_name("idx-folder", tmp_path) == tmp_path.name
    monkeypatch.chdir(tmp_path)
    assert folder_name("image-folder", Path()) == tmp_path.name
