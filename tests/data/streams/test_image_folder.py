"""A user's folder of image files as a data set."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from failing import data_fails
from PIL import Image

from vcl_radial.data import decoding
from vcl_radial.data.streams import build_stream, image_folder, load_dataset
from vcl_radial.data.streams.image_folder import load_image_folder
from vcl_radial.errors import DataError


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def picture(seed: int, width: int = 9, height: int = 8, mode: str = "RGB") -> Image.Image:
    shape = (height, width, 3)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def write(root: Path, classes: str = "abcd", n: int = 5, parts=("train", "test"), **shape) -> Path:
    for part in parts:
        for c in classes:
            folder = root / part / c
            folder.mkdir(parents=True)
            for k in range(n):
                picture(1000 * len(part) + 100 * ord(c) + k, **shape).save(folder / f"{k}.png")
    return root


@pytest.mark.parametrize("image_size", [None, 6, 20])
def test_images_and_labels_are_those_of_torchvisions_image_folder(tmp_path, image_size):
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import Compose, PILToTensor, Resize

    write(tmp_path)
    data = load_image_folder(tmp_path, image_size=image_size)
    resize = [] if image_size is None else [Resize((image_size, image_size))]
    for part, x, y in (
        ("train", data.train_x, data.train_y),
        ("test", data.test_x, data.test_y),
    ):
        reference = ImageFolder(tmp_path / part, Compose([*resize, PILToTensor()]))
        images, labels = zip(*reference, strict=True)
        assert torch.equal(x, torch.stack(images))
        assert y.tolist() == list(labels)
        assert data.class_names == tuple(reference.classes)
    assert data.name == tmp_path.name
    assert x.dtype == torch.uint8


def test_grey_files_make_a_grey_data_set_however_they_are_stored(tmp_path):
    write(tmp_path / "grey", mode="L")
    data = load_image_folder(tmp_path / "grey")
    assert data.train_x.shape == (20, 8, 9)
    for path in (tmp_path / "grey").rglob("*.png"):
        with Image.open(path) as image:
            image.convert("RGB").save(path)
    assert torch.equal(load_image_folder(tmp_path / "grey").train_x, data.train_x)


def test_one_colour_image_makes_the_data_set_one_of_colour(tmp_path):
    write(tmp_path, mode="L")
    grey = load_image_folder(tmp_path).train_x
    picture(0).save(tmp_path / "test" / "d" / "9.png")
    data = load_image_folder(tmp_path)
    assert torch.equal(data.train_x, grey.unsqueeze(1).expand(-1, 3, -1, -1))
    assert data.test_x.shape == (21, 3, 8, 9)


def test_pixels_of_16_bits_keep_their_upper_8_and_transparency_is_left_out(tmp_path):
    write(tmp_path, mode="L")
    values = np.arange(72, dtype=np.uint16).reshape(8, 9) * 900
    Image.fromarray(values).save(tmp_path / "train" / "a" / "0.png")
    with_alpha = picture(3, mode="L").convert("LA")
    with_alpha.putalpha(7)
    with_alpha.save(tmp_path / "train" / "a" / "1.png")
    data = load_image_folder(tmp_path)
    assert data.train_x[0].tolist() == (values // 256).tolist()
    assert data.train_x[1].tolist() == np.asarray(picture(3, mode="L")).tolist()


def test_photographs_are_turned_as_the_camera_says(tmp_path):
    write(tmp_path, n=2)
    turned = picture(5, width=8, height=9).transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be shown after a quarter turn clockwise
    for path in tmp_path.rglob("*.png"):
        picture(5, width=8, height=9).save(path)
    turned.save(tmp_path / "train" / "a" / "0.png", exif=exif)
    data = load_image_folder(tmp_path)
    assert torch.equal(data.train_x[0], data.train_x[1])


def test_a_folder_without_a_test_part_is_split_by_share_and_seed(tmp_path):
    write(tmp_path, n=10, parts=(".",))
    data = load_dataset("image-folder", tmp_path, test_share=0.3, test_seed=4)
    assert data.train_y.bincount().tolist() == [7] * 4
    assert data.test_y.bincount().tolist() == [3] * 4
    of_class = [load_image_folder(tmp_path / ".", test_share=0.3, seed=seed) for seed in (4, 5)]
    assert torch.equal(data.test_x, of_class[0].test_x)
    assert not torch.equal(data.test_x, of_class[1].test_x)
    everything = torch.cat([data.train_x, data.test_x]).flatten(1)
    assert len(everything.unique(dim=0)) == 40


@pytest.mark.parametrize("kind", ["split", "permuted"])
@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_a_validation_part_is_what_streams_hold_out_and_nothing_else(tmp_path, kind, validation):
    write(write(tmp_path, n=3), n=2, parts=("val",))
    data = load_image_folder(tmp_path)
    assert data.held_out.nonzero()[:, 0].tolist() == list(range(12, 20))
    settings = {"kind": kind, "dataset": "image-folder", "tasks": 2, "validation": validation}
    stream = build_stream(settings, tmp_path)
    of_task = 8 if kind == "permuted" else 4
    assert [len(rows) for rows in stream.validation] == [of_task] * 2
    assert [len(rows) for rows in stream.train] == [of_task * 3 // 2] * 2
    x = stream.x[stream.validation[0]]
    with Image.open(tmp_path / "val/a/0.png") as first:
        pixels = torch.from_numpy(np.asarray(first).copy()).permute(2, 0, 1).flatten()
    mean, std = data.train_x.float().mean(), data.train_x.float().std(correction=0)
    assert torch.allclose(x[0], (pixels - mean) / std, atol=1e-5)
    for path in (tmp_path / "val").rglob("*.png"):
        path.rename(tmp_path / "train" / path.parent.name / f"z{path.name}")
    (tmp_path / "val").rename(tmp_path / ".val")
    assert load_image_folder(tmp_path).checksum != data.checksum


def test_other_validation_images_leave_the_test_part_as_it_is(tmp_path):
    write(tmp_path, n=10, parts=(".",))
    settings = {"kind": "split", "dataset": "image-folder", "tasks": 2, "validation": 0.25}
    first, second = (build_stream(settings | {"split_seed": s}, tmp_path) for s in (0, 1))
    assert torch.equal(first.inputs(0, "test"), second.inputs(0, "test"))
    assert not torch.equal(first.inputs(0, "validation"), second.inputs(0, "validation"))


def test_a_large_jpeg_decoded_at_a_smaller_scale_is_the_same_picture(tmp_path):
    write(tmp_path)
    smooth = picture(0, width=5, height=4).resize((400, 320), Image.Resampling.BICUBIC)
    smooth.save(tmp_path / "train" / "a" / "5.jpg", quality=95)
    found = load_image_folder(tmp_path, image_size=16).train_x[5]
    expected = np.asarray(smooth.resize((16, 16), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(found.numpy().astype(int) - expected.astype(int)).max() < 8


def test_an_image_folder_is_cut_into_tasks_named_after_its_classes(tmp_path):
    write(tmp_path)
    settings = {"kind": "split", "dataset": "image-folder", "tasks": 2, "image_size": 8}
    stream = build_stream(settings | {"class_order": [3, 0, 1, 2], "flatten": False}, tmp_path)
    assert stream.task_names == ("d, a", "b, c")
    assert stream.x.shape == (40, 3, 8, 8)
    permuted = build_stream(settings | {"kind": "permuted"}, tmp_path)
    assert permuted.n_classes == 4
    assert permuted.inputs(1, "test").shape == (20, 3 * 8 * 8)


def damage(root: Path, contents: bytes) -> Path:
    path = root / "train" / "b" / "3.png"
    path.write_bytes(contents)
    return path


def test_a_damaged_file_is_named(tmp_path):
    write(tmp_path, "ab", n=4)
    whole = (tmp_path / "train" / "b" / "3.png").read_bytes()
    for length in range(0, len(whole) - 24, 7):  # what comes then only says that it ends
        path = damage(tmp_path, whole[:length])
        with data_fails(path):
            load_image_folder(tmp_path)
    path = damage(tmp_path, b"<html>not found</html>")
    with data_fails(path, "its format is none"):
        load_image_folder(tmp_path)


def test_a_flipped_byte_is_either_harmless_or_a_fault_of_the_data(tmp_path):
    write(tmp_path, "ab", n=4)
    whole = (tmp_path / "train" / "b" / "3.png").read_bytes()
    for place in range(0, len(whole), 5):
        damage(tmp_path, whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(DataError):
            load_image_folder(tmp_path)


def test_two_sizes_are_reported_with_two_files_and_the_key_that_fixes_it(tmp_path):
    write(tmp_path)
    picture(0, width=10).save(tmp_path / "train" / "b" / "3.png")
    sizes = ("9x8", tmp_path / "train/b/3.png", "10x8")
    with data_fails(tmp_path / "test/a/0.png", *sizes, "--set stream.image_size=N"):
        load_image_folder(tmp_path)
    assert load_image_folder(tmp_path, image_size=8).train_x.shape == (20, 3, 8, 8)


def test_images_that_memory_cannot_hold_are_refused_before_they_are_read(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    with data_fails(tmp_path, "40 images of 9x8 pixels", "--set stream.image_size=N"):
        load_image_folder(tmp_path)


def test_pixels_of_32_bits_are_refused(tmp_path):
    write(tmp_path)
    path = tmp_path / "train" / "b" / "3.tiff"
    Image.fromarray(np.zeros((8, 9), np.float32)).save(path)
    with data_fails(path, "8 or 16 bits"):
        load_image_folder(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_must_not_be_read_is_named(tmp_path):
    write(tmp_path)
    path = tmp_path / "train" / "b" / "3.png"
    path.chmod(0)
    with data_fails(path, "Permission denied"):
        load_image_folder(tmp_path)


def test_pixels_are_kept_until_a_file_changes(tmp_path, monkeypatch, capsys):
    write(tmp_path)
    monkeypatch.setattr(decoding, "_PATIENCE", 0.0)
    first = load_image_folder(tmp_path)
    assert f"{tmp_path}: images: 1 of 40" in capsys.readouterr().err

    def decode(*args, **options):
        raise AssertionError("decoded again")

    with monkeypatch.context() as patch:
        patch.setattr(image_folder, "decode_image", decode)
        again = load_image_folder(tmp_path)
        assert torch.equal(first.train_x, again.train_x)
        assert torch.equal(first.test_x, again.test_x)
        with pytest.raises(AssertionError, match="decoded again"):
            load_image_folder(tmp_path, image_size=4)
    picture(0).save(tmp_path / "train" / "b" / "3.png")
    changed = load_image_folder(tmp_path)
    assert not torch.equal(first.train_x, changed.train_x)
    (kept,) = Path(os.environ["XDG_CACHE_HOME"]).rglob("*.npy")  # the earlier state is gone
    kept.write_bytes(kept.read_bytes()[:300])
    assert torch.equal(load_image_folder(tmp_path).train_x, changed.train_x)
