"""Rows of features in the place of images: `stream.features`."""

import os
import re
import zipfile

import numpy as np
import pytest
from failing import data_fails
from PIL import Image

from vcl_radial.cli import main
from vcl_radial.data.named_files import check_feature_file
from vcl_radial.data.streams import build_stream, load_dataset
from vcl_radial.runs.planning import plan

RUN = ["run", "split-digits-multi-head", "--method", "naive", "--set", "epochs=1", "hidden=[8]"]


def write(path, **parts):
    digits = load_dataset("digits")
    rows = {
        name: getattr(digits, f"{name}_x").flatten(1).numpy().astype(np.float32)
        for name in ("train", "test")
    }
    np.savez(path, **(rows | parts))
    return str(path)


def test_pixels_as_features_are_the_images(tmp_path):
    settings = {"kind": "split", "dataset": "digits", "tasks": 5, "heads": "single"}
    images = build_stream(settings | {"flatten": True})
    rows = build_stream(settings | {"features": write(tmp_path / "pixels.npz")})
    scale = images.x.std() / rows.x.std()
    assert np.allclose((rows.x - rows.x.mean()) * scale, images.x - images.x.mean(), atol=1e-4)
    assert (rows.y == images.y).all()


def test_a_run_knows_its_features_by_their_checksum(tmp_path):
    def checksum(path):
        (run,) = plan("split-digits-multi-head", ["naive"], [0], {"stream.features": path})
        return run.on_data(None).stream.checksum

    first = write(tmp_path / "a.npz")
    same = write(tmp_path / "b.npz")
    other = write(tmp_path / "c.npz", test=np.ones((355, 64), np.float32))
    assert checksum(first) == checksum(same)
    assert checksum(first) != checksum(other)


def test_a_run_on_features_ends_with_a_report(tmp_path):
    features = write(tmp_path / "pixels.npz")
    assert main([*RUN, f"stream.features={features}", "--out", str(tmp_path / "runs")]) == 0
    assert (tmp_path / "runs" / "report" / "split-digits-multi-head" / "summary.csv").is_file()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train": np.zeros((3, 64))}, r"train must be \[1442, D\], .* is \[3, 64\]"),
        ({"test": np.zeros((355, 0))}, r"test must be \[355, D\]"),
        ({"test": np.zeros((355, 30))}, "rows of train have 64 numbers and rows of test 30"),
        ({"test": np.full((355, 64), np.nan)}, "test has numbers that are not finite"),
        ({"test": np.full((355, 64), 1e300)}, "test has numbers that are not finite"),
        ({"train": np.array([{}], dtype=object)}, "real numbers, and is of type object"),
        ({"train": np.zeros((1442, 64), complex)}, "real numbers, and is of type complex128"),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path, capsys, parts, message):
    features = write(tmp_path / "wrong.npz", **parts)
    assert main([*RUN, f"stream.features={features}", "--out", str(tmp_path / "runs")]) == 1
    error = capsys.readouterr().err
    assert "wrong.npz" in error
    assert re.search(message, error)


def test_a_file_that_holds_no_features_is_named(tmp_path, capsys):
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "half.npz", train=np.zeros((1, 1)))
    for name, message in (
        ("none.npz", "no such file"),
        ("text.npz", "write it with numpy.savez"),
        ("half.npz", "has no array 'test'"),
    ):
        features = f"stream.features={tmp_path / name}"
        assert main([*RUN, features, "--out", str(tmp_path / "runs")]) == 1
        error = capsys.readouterr().err
        assert name in error
        assert message in error


def test_a_file_is_looked_for_beside_the_benchmark(tmp_path):
    write(tmp_path / "rows.npz")
    benchmark = tmp_path / "mine.toml"
    benchmark.write_text('[stream]\ndataset = "digits"\nfeatures = "rows.npz"\n')
    (run,) = plan(str(benchmark), ["naive"], [0])
    assert run.stream.features == str(tmp_path / "rows.npz")


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "rows.npz"
    digits = load_dataset("digits")
    np.savez_compressed(path, train=digits.train_x.flatten(1), test=digits.test_x.flatten(1))
    content = path.read_bytes()
    path.write_bytes(content[:3000] + bytes(200) + content[3200:])
    with data_fails(path, "write train again"):
        load_dataset("digits", features=str(path))


def test_features_of_a_folder_of_images_take_their_place(tmp_path):
    for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png", "b/3.png"):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (4, 4), np.uint8)).save(path)
    images = load_dataset("image-folder", tmp_path / "images")
    np.savez(tmp_path / "rows.npz", train=[[0], [1], [2]], test=[[3], [4]])
    rows = load_dataset("image-folder", tmp_path / "images", features=str(tmp_path / "rows.npz"))
    assert rows.train_x.tolist() == [[0], [1], [2]]
    assert rows.train_y.equal(images.train_y)
    assert rows.test_y.equal(images.test_y)
    assert rows.class_names == ("a", "b")


def header(shape="(1442, 3)", descr="'<f4'"):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def archive(path, train):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, rows in (("train", 1442), ("test", 355)):
            whole = header(f"({rows}, 3)") + bytes(rows * 12)
            file.writestr(f"{name}.npy", train if name == "train" and train else whole)
    return path


@pytest.mark.parametrize(
    ("train", "words"),
    [
        (header(), "does not hold what its header says"),
        (header("(1442, 10**30)"), "train"),
        (header(f"(1442, {10**30})") + bytes(99), "does not hold what its header says"),
        (header("(1442, -3)"), "must be"),
        (header("(" * 9000 + "3" + ")" * 9000), "cannot be read"),
        (header(descr="'|O'") + b"cos\nsystem\n", "real numbers"),
        (header(descr="[('a', '<f4')]"), "real numbers"),
        (b"\x93NUMPY\x09\x00", "cannot be read"),
        (b"", None),
    ],
)
def test_a_header_is_no_promise(tmp_path, train, words):
    path = archive(tmp_path / "features.npz", train)
    if words is None:
        check_feature_file(path, (1442, 355))
        return
    with data_fails(path, words):
        check_feature_file(path, (1442, 355))


def test_what_is_no_regular_file_of_features_is_one_line(tmp_path):
    path = tmp_path / "features.npz"
    os.mkfifo(path)
    with data_fails(path, "pipe"):
        check_feature_file(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with data_fails(path, "device"):
        check_feature_file(path)
