import pytest
import torch
from failing import data_fails

from vcl_radial.data.streams import ImageData, split_stream

PARTS = {
    "train_x": torch.rand(6, 4, 4),
    "train_y": torch.tensor([0, 1, 2, 0, 1, 2]),
    "test_x": torch.rand(3, 4, 4),
    "test_y": torch.tensor([0, 1, 2]),
}


def data(**parts):
    return ImageData("mine", **PARTS | parts)


def test_classes_are_named_by_their_numbers_where_nobody_names_them():
    assert data().class_names == ("0", "1", "2")
    assert data(class_names=("a", "b", "c")).class_names == ("a", "b", "c")


def test_labels_of_any_whole_type_serve():
    assert data(train_y=PARTS["train_y"].to(torch.uint8)).train_y.dtype == torch.int64


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"train_x": [[1.0]]}, "not list"),
        ({"test_y": torch.tensor([0, 1])}, "test_x [3, 4, 4] and test_y [2]"),
        ({"train_y": torch.rand(6)}, "train_y"),
        ({"train_y": PARTS["train_y"] - 1}, "train_y"),
        ({"train_x": torch.full((6, 4, 4), torch.nan)}, "train_x"),
        ({"test_x": torch.rand(3, 5, 4)}, "train_x is of [4, 4] and test_x of [5, 4]"),
        ({"test_y": torch.tensor([0, 1, 3])}, "class 3 "),
        ({"class_names": ("a", "b")}, "2 class_names"),
        ({"train_y": torch.tensor([0, 2, 2, 0, 2, 2])}, "class 1 "),
        ({"test_x": torch.rand(0, 4, 4), "test_y": torch.zeros(0).long()}, "N above 0"),
    ],
)
def test_parts_that_do_not_fit_are_refused_in_words(parts, words):
    with data_fails("mine", words):
        data(**parts)


@pytest.mark.parametrize(
    ("size", "flat", "images"),
    [((4, 4), [9, 16], [9, 1, 4, 4]), ((3, 4, 4), [9, 48], [9, 3, 4, 4]), ((7,), [9, 7], [9, 7])],
)
def test_images_with_and_without_channels_and_vectors_are_streams(size, flat, images):
    own = data(train_x=torch.rand(6, *size), test_x=torch.rand(3, *size))
    for flatten, shape in ((True, flat), (False, images)):
        stream = split_stream(own, tasks=1, validation=0.0, flatten=flatten)
        assert list(stream.x.shape) == shape
        assert torch.allclose(stream.x[:6].mean(), torch.tensor(0.0), atol=1e-6)
