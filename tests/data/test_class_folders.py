"""Which folders of images are parts and which are classes, whatever their names and links."""

import os
import unicodedata
from pathlib import Path

import pytest
from failing import data_fails

from vcl_radial.data.class_folders import part_of
from vcl_radial.data.data_files import ImageFiles, image_files
from vcl_radial.errors import DataError

CLASSES = ("ant", "bee", "fly")


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "images"


def lay_out(root: Path, *folders: str, classes=CLASSES, n: int = 2) -> Path:
    """Empty images in each class of each folder."""
    for folder in folders:
        for name in classes:
            (root / folder / name).mkdir(parents=True)
            for k in range(n):
                (root / folder / name / f"{k}.png").touch()
    return root


def counts(files: ImageFiles) -> tuple[list[int], ...]:
    return tuple([len(images) for images in p] for p in (files.train, files.validation, files.test))


def assert_refused(root: Path, at: Path, *named: object) -> None:
    with data_fails(at, *named):
        image_files(root)


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("train", "test"),
        ("Train", "Test"),
        ("TRAIN", "TEST"),
        ("training", "testing"),
        ("train_set", "test_set"),
        ("trainset", "testset"),
        ("train_images", "test_images"),
        ("Training Data", "Test Data"),
        ("seg_train", "seg_test"),
        ("seg_train/seg_train", "seg_test/seg_test"),
        ("train1", "test1"),
        ("archive/Train", "archive/Test"),
    ],
)
def test_parts_are_known_by_other_names(root, train, test):
    files = image_files(lay_out(root, train, test))
    assert files.class_names == CLASSES
    assert counts(files) == ([2, 2, 2], [], [2, 2, 2])
    assert files.test[0] == (root / test / "ant/0.png", root / test / "ant/1.png")
    assert files.left_out == ()


@pytest.mark.parametrize("name", ["val", "valid", "Validation", "dev", "val_set"])
def test_a_third_part_is_the_validation_part(root, name):
    lay_out(lay_out(root, "train", "test"), name, n=1)
    assert counts(image_files(root)) == ([2, 2, 2], [1, 1, 1], [2, 2, 2])
    (root / name / "ant/0.png").unlink()
    assert_refused(root, root / name / "ant", "no image")


@pytest.mark.parametrize(
    "name", ["trains", "pretrain", "test tube", "valley", "seg_pred", "set", ""]
)
def test_other_names_are_no_parts(name):
    assert part_of(name) is None


@pytest.mark.parametrize(
    "classes", [("bus", "train"), ("blood_test", "urine_test"), ("dev", "ops")]
)
def test_classes_may_have_the_names_of_parts_where_no_folder_shows_that_they_are_parts(
    root, classes
):
    assert image_files(lay_out(root, ".", classes=classes)).class_names == classes


@pytest.mark.parametrize(
    ("folders", "at", "named"),
    [
        (("asl_train", "asl_test"), "asl_train", "ant, bee, fly"),
        (("fold1", "fold2"), "fold2", "ant, bee, fly"),
        (("amazon/images", "dslr/images"), "dslr", "ant, bee, fly"),
        (("rose/train", "rose/test", "lily/x"), "rose", "test, train"),
        ((".", "copy"), "copy", "ant, bee, fly"),
        (("Train", "train", "test"), "Train", "/train"),
        (("train", "valid"), "", "no test: add "),
        (("train", "bus"), "", "no test: add "),
    ],
)
def test_folders_that_may_be_parts_or_classes_are_refused(root, folders, at, named):
    assert_refused(lay_out(root, *folders), root / at, named)


def test_parts_without_class_folders_are_no_classes(root):
    lay_out(root, ".", classes=("Train", "Valid"))
    assert_refused(root, root / "Train", "2 images", "class folder")


def test_folders_inside_class_folders_may_have_one_name_in_common(root):
    files = image_files(lay_out(root, "train/a", "test/a", "train/b", "test/b", classes=["images"]))
    assert counts(files) == ([2, 2], [], [2, 2])
    nested = lay_out(lay_out(root / "more", "rose", classes="st"), "lily", classes="uv")
    assert image_files(nested).class_names == ("lily", "rose")


def test_images_outside_of_the_class_folders_are_left_out_and_named(root):
    lay_out(lay_out(root, "train", "test"), "extra", classes=["ant"])
    for name in ("a.png", "train/b.png", "README.md", "train/ant/c.txt", ".d.png"):
        (root / name).touch()
    assert set(image_files(root).left_out) == {
        *(root / "extra/ant" / f"{k}.png" for k in range(2)),
        *(root / name for name in ("a.png", "train/b.png", "train/ant/c.txt")),
    }


@pytest.mark.parametrize("targets", [["."], [".", "."], [".."], ["../.."], ["/"]])
def test_links_to_folders_above_add_nothing(root, targets):
    lay_out(root, ".")
    for k, target in enumerate(targets):
        (root / "ant" / f"link{k}").symlink_to(target)
    assert counts(image_files(root)) == ([1, 1, 1], [], [1, 1, 1])


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("train/ant/x", "../bee"),
        ("train/ant/x.png", "../bee/0.png"),
        ("test/ant/x", "../../train/ant"),
        ("test/ant/x.png", "../../train/ant/0.png"),
        ("test/cow", "../train/cow"),
        ("train/dog", "cow"),
        ("train/dog", "."),
    ],
)
def test_a_link_to_another_class_or_part_is_refused(root, link, target):
    lay_out(lay_out(root, "train", "test"), "train", classes=["cow"])
    (root / link).symlink_to(target)
    with pytest.raises(DataError, match="by a link"):  # either of the two is named
        image_files(root)


def test_a_part_that_is_a_link_to_another_one_is_refused(root):
    (lay_out(root, "train") / "test").symlink_to("train")
    assert_refused(root, root / "test/ant", root / "train/ant")
    (root / "test").unlink()
    lay_out(root, "test")
    (root / "test/ant/9.png").hardlink_to(root / "train/ant/0.png")
    assert_refused(root, root / "test/ant/9.png", root / "train/ant")


def test_a_subset_may_be_made_of_links(root, tmp_path):
    whole = lay_out(tmp_path / "whole", ".", n=3)
    root.mkdir()
    for name in ("ant", "bee"):
        (root / name).symlink_to(whole / name)
    assert counts(image_files(root)) == ([2, 2], [], [1, 1])
    (whole / "ant/up").symlink_to("..")
    assert counts(image_files(root)) == ([2, 2], [], [1, 1])
    (tmp_path / "linked").symlink_to(root)
    assert counts(image_files(tmp_path / "linked")) == ([2, 2], [], [1, 1])
    for name in ("cow", "dog"):
        (tmp_path / "files" / name).mkdir(parents=True)
    for k in range(3):
        (tmp_path / f"files/cow/{k}.png").symlink_to(whole / f"ant/{k}.png")
        (tmp_path / f"files/dog/{k}.png").symlink_to(whole / f"bee/{k}.png")
    assert counts(image_files(tmp_path / "files")) == ([2, 2], [], [1, 1])


def test_a_file_that_is_in_its_class_twice_counts_once(root):
    lay_out(root, ".")
    (root / "ant/9.png").symlink_to("0.png")
    files = image_files(root)
    assert counts(files) == ([1, 1, 1], [], [1, 1, 1])
    assert files.left_out == (root / "ant/9.png",)


@pytest.mark.parametrize("link", ["ant/9.png", "ant/sub", "cow"])
@pytest.mark.parametrize("target", ["nowhere", "itself"])
def test_a_link_that_leads_nowhere_is_named(root, link, target):
    path = lay_out(root, ".") / link
    path.symlink_to(path.name if target == "itself" else target)
    assert_refused(root, path, "cannot be read")


def test_one_name_in_two_unicode_forms_is_one_class(root):
    composed, apart = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    lay_out(lay_out(root, "train", classes=["a", composed]), "test", classes=["a", apart])
    assert image_files(root).class_names == ("a", composed)
    for form in (composed, apart):
        lay_out(root / form, ".", classes=["a", form], n=10)
    first, second = (image_files(root / form) for form in (composed, apart))
    assert first.class_names == second.class_names
    names = [[[path.name for path in images] for images in f.test] for f in (first, second)]
    assert names[0] == names[1]
    lay_out(root / composed, ".", classes=[apart])
    assert_refused(root / composed, root / composed, "two folders")


@pytest.mark.parametrize("parts", [["."], ["train", "test"]])
def test_a_class_name_that_is_not_in_utf_8_is_named_visibly(root, parts):
    lay_out(root, *parts, classes=["a", "b", os.fsdecode(b"c\xff")])
    with pytest.raises(DataError) as error:
        image_files(root)
    assert error.value.key.endswith(r"/c\udcff")


def test_files_whose_names_are_not_in_utf_8_are_images(root):
    lay_out(root, ".")
    (root / "ant" / os.fsdecode(b"c\xff.png")).touch()
    assert len(image_files(root)) == 7
