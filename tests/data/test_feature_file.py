"""Rows of features in the place of images: `stream.features`."""

import re

import numpy as np
import pytest

from vcl_radial.cli import main
from vcl_radial.data.streams import build_stream, load_dataset
from vcl_radial.runs.catalogue import plan

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


def test_without_features_a_spec_is_as_it_was():
    (run,) = plan("split-digits-multi-head", ["naive"], [0], {})
    assert "features" not in run.stream.model_dump()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train": np.zeros((3, 64))}, r"train must be \[\d+, D\], a row for each image of digits"),
        ({"test": np.full((355, 64), np.nan)}, "test has numbers that are not finite"),
        ({"train": np.array([{}], dtype=object)}, "train cannot be read"),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path, capsys, parts, message):
    features = write(tmp_path / "wrong.npz", **parts)
    assert main([*RUN, f"stream.features={features}", "--out", str(tmp_path / "runs")]) == 1
    error = capsys.readouterr().err
    assert "wrong.npz" in error
    assert re.search(message, error)


def test_a_file_that_is_none_is_named(tmp_path, capsys):
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "half.npz", train=np.zeros((1, 1)))
    for name, message in (
        ("none.npz", "no such file"),
        ("text.npz", "is no .npz file"),
        ("half.npz", "has no array 'test'"),
    ):
        features = f"stream.features={tmp_path / name}"
        assert main([*RUN, features, "--out", str(tmp_path / "runs")]) == 1
        error = capsys.readouterr().err
        assert name in error
        assert message in error
