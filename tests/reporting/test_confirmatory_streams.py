"""The confirmatory data sets are what their functions say."""

import importlib
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from failing import data_fails
from PIL import Image

from vcl_radial.data.streams import build_stream
from vcl_radial.runs import catalogue

PAGE = Path(__file__).parents[2] / "reports" / "central"


@pytest.fixture
def streams(monkeypatch):
    monkeypatch.syspath_prepend(str(PAGE))
    return importlib.import_module("streams")


def test_a_pixel_is_the_share_of_its_area_that_is_ink(streams):
    ink = np.zeros((2, 105, 105), bool)
    ink[0, :, :15] = True  # 15 = 4 * 3.75
    ink[1, 0, 0] = True
    averaged = streams.averaged(ink)
    assert averaged.shape == (2, 28, 28)
    assert (averaged[0, :, :4] == 255).all()
    assert (averaged[0, :, 4:] == 0).all()
    assert averaged[1, 0, 0] == round(255 / 3.75**2)
    assert averaged[1].sum() == averaged[1, 0, 0]


def test_all_ink_is_still_there(streams):
    ink = np.random.default_rng(0).random((3, 105, 105)) < 0.1
    assert streams.averaged(ink).mean() == pytest.approx(255 * ink.mean(), rel=0.01)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("omniglot", "omniglot/omniglot_images_background.npz"),
        ("cifar10", "cifar10-jpeg.tar.xz"),
    ],
)
def test_a_missing_file_is_named(streams, tmp_path, name, file):
    for folder in (tmp_path, None):
        with data_fails(file if folder is None else folder / file, "--data-dir"):
            getattr(streams, name)(folder)


def test_the_copy_of_cifar_is_unpacked_once(streams, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for part, count in (("train", 3), ("test", 2)):
        for number in range(2 * count):
            path = tmp_path / "images" / part / "ab"[number % 2] / f"{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (32, 32), (20 * number, 0, 250)).save(path)
    packed = tmp_path / "cifar10-jpeg.tar.xz"
    with tarfile.open(packed, "w:xz") as archive:
        archive.add(tmp_path / "images", ".")
    data = streams.cifar10(tmp_path)
    assert data.train_x.shape == (6, 3, 16, 16)
    assert (data.train_x[:, 2].int() - 250).abs().max() <= 3  # as bright as before
    assert data.test_y.tolist() == [0, 0, 1, 1]
    with tarfile.open(packed, "w:xz"):
        pass  # empty now, and not read again
    assert streams.cifar10(tmp_path).checksum == data.checksum


def test_omniglot_has_an_alphabet_for_each_task(streams, real_data):
    data = streams.omniglot(real_data)
    assert data.train_x.shape == (2800, 28, 28)
    assert data.test_x.shape == (1200, 28, 28)
    assert (data.train_y.bincount() == 14).all()
    assert (data.test_y.bincount() == 6).all()
    alphabets = [name.rpartition(" ")[0] for name in data.class_names]
    assert alphabets[::20] == [
        *("Arcadian", "Armenian", "Asomtavruli (Georgian)", "Balinese", "Bengali"),
        *("Braille", "Cyrillic", "Early Aramaic", "Syriac (Estrangelo)", "Futhorc"),
    ]
    assert all(alphabets.count(name) == 20 for name in alphabets)
    drawings = [{bytes(x.numpy()) for x in part} for part in (data.train_x, data.test_x)]
    assert not drawings[0] & drawings[1]
    assert data.train_x.float().mean() < 40  # ink is bright
    assert streams.omniglot(real_data).checksum == data.checksum


@pytest.mark.parametrize(("name", "tasks"), [("omniglot", 10), ("cifar10", 5)])
def test_the_benchmarks_name_streams_that_know_nothing_of_later_tasks(
    streams, real_data, name, tasks
):
    settings = catalogue.load("benchmark", str(PAGE / "streams" / f"{name}.toml")).table["stream"]
    assert (settings["statistics"], settings["tasks"]) == ("first-task", tasks)
    if name == "omniglot":
        stream = build_stream(settings, real_data)
        assert [len(rows) for rows in stream.train] == [224] * 10
        assert [len(rows) for rows in stream.validation] == [56] * 10
        assert stream.inputs(0, "train").mean() == pytest.approx(0, abs=0.05)


@pytest.mark.processes
def test_a_worker_finds_what_a_benchmark_names_by_its_path(command, tmp_path):
    folder = tmp_path / "page" / "streams"
    folder.mkdir(parents=True)
    (folder.parent / "data.py").write_text(
        "import torch\n"
        "from vcl_radial.data.streams import ImageData\n"
        "def noise(folder):\n"
        "    x, y = torch.arange(1280).view(80, 4, 4), torch.arange(80) % 4\n"
        "    return ImageData('noise', x, y, x, y)\n"
    )
    (folder / "noise.toml").write_text(
        '[stream]\ndataset = "../data.py:noise"\ntasks = 2\n[recipe]\nbatch_size = 8\n'
    )
    code, _, err = command(
        *("run", "page/streams/noise.toml", "--method", "naive", "--seeds", "2", "--jobs", "2"),
        *("--set", "epochs=1", "hidden=[4]"),
    )
    assert code == 0, err
    (environment, *_) = (tmp_path / "runs").rglob("environment.json")
    assert json.loads(environment.read_text())["tasks"] == ["0, 1", "2, 3"]
