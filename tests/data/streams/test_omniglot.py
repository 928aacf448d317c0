"""Omniglot in both layouts, from few small drawings, and the stream of its alphabets."""

import csv

import numpy as np
import pytest
import torch
from failing import data_fails, fails
from PIL import Image

from vcl_radial.data.streams import build_stream, load_dataset
from vcl_radial.runs.planning import plan

ALPHABETS = {"background": {"Latin": 3, "Greek": 2}, "evaluation": {"Tifinagh": 4}}
NAMES = ["Latin", "Greek", "Tifinagh"]


def drawing(number, drawer):
    """105x105 bits of paper with a square of ink whose place tells character and drawer."""
    paper = np.ones((105, 105), bool)
    paper[4 * drawer : 4 * drawer + 15, 10 * number : 10 * number + 15] = False
    return paper


def drawings():
    """All characters `[9, 20, 105, 105]`."""
    return np.array([[drawing(number, drawer) for drawer in range(20)] for number in range(9)])


def as_arrays(root):
    folder = root / "omniglot"
    folder.mkdir(parents=True)
    paper = drawings()
    np.savez_compressed(folder / "omniglot_images_background.npz", images=paper[:5])
    np.savez_compressed(folder / "omniglot_images_evaluation.npz", images=paper[5:])
    with (folder / "alphabets.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["part", "alphabet", "first_character", "last_character", "characters"])
        first = 1
        for part, alphabets in ALPHABETS.items():
            for name, count in alphabets.items():
                table.writerow([part, name, first, first + count - 1, count])
                first += count
    return root


def as_folders(root):
    paper, number = drawings(), 0
    for part, alphabets in ALPHABETS.items():
        # Folders are read by name: Greek before Latin.
        for name, count in alphabets.items():
            for place in range(1, count + 1):
                folder = root / "omniglot" / f"images_{part}" / name / f"character{place:02}"
                folder.mkdir(parents=True)
                for drawer in range(20):
                    image = Image.fromarray(paper[number, drawer])
                    image.save(folder / f"{number + 1:04}_{drawer + 1:02}.png")
                number += 1
    return root


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def centre(image):
    """Row and column of the mean of the ink, in pixels of 105."""
    ink = image.double()
    at = (torch.arange(28) + 0.5) * 105 / 28
    return [float((ink.sum(axis) * at).sum() / ink.sum()) for axis in (1, 0)]


def test_the_last_four_drawers_are_the_test_part(tmp_path):
    data = load_dataset("omniglot", as_arrays(tmp_path))
    assert data.train_x.shape == (9 * 16, 28, 28)
    assert data.test_x.shape == (9 * 4, 28, 28)
    assert data.train_y.tolist() == [c for c in range(9) for _ in range(16)]
    for character, drawer in ((0, 0), (5, 7), (8, 15)):
        expected = [4 * drawer + 7.5, 10 * character + 7.5]
        assert centre(data.train_x[16 * character + drawer]) == pytest.approx(expected, abs=0.3)
    for character, drawer in ((0, 16), (8, 19)):
        expected = [4 * drawer + 7.5, 10 * character + 7.5]
        assert centre(data.test_x[4 * character + drawer - 16]) == pytest.approx(expected, abs=0.3)
    assert data.class_names[3] == "Greek 01"


def test_both_layouts_hold_the_same_drawings(tmp_path):
    arrays = load_dataset("omniglot", as_arrays(tmp_path / "arrays"))
    folders = load_dataset("omniglot", as_folders(tmp_path / "folders"))
    assert sorted(arrays.class_names) == sorted(folders.class_names)
    for name in arrays.class_names:
        old, new = (
            data.test_x[data.test_y == data.class_names.index(name)] for data in (arrays, folders)
        )
        assert (old.int() - new.int()).abs().max() <= 1, name


@pytest.mark.parametrize("heads", ["multi", "single"])
def test_alphabets_are_tasks_of_their_own_size(tmp_path, heads):
    as_arrays(tmp_path)
    settings = {"kind": "grouped", "dataset": "omniglot", "heads": heads, "flatten": False}
    stream = build_stream(settings, tmp_path)
    assert [*stream.task_names] == NAMES
    starts = [0, 0, 0] if heads == "multi" else [0, 3, 5]
    expected = [tuple(range(s, s + n)) for s, n in zip(starts, (3, 2, 4), strict=True)]
    assert [*stream.task_classes] == expected
    assert stream.n_classes == (4 if heads == "multi" else 9)
    for task in range(3):
        for part in ("train", "validation", "test"):
            assert set(stream.labels(task, part).tolist()) <= set(expected[task])
        assert len(stream.test[task]) == 4 * len(expected[task])
        assert len(stream.train[task]) + len(stream.validation[task]) == 16 * len(expected[task])
    assert stream.class_names[1] == ("Greek 01", "Greek 02")


def test_equal_groups_are_the_tasks_of_a_split(tiny):
    """With two classes to a group, both builders give one stream."""
    from dataclasses import replace

    from vcl_radial.data.streams.split import grouped_stream, split_stream

    groups = tuple((f"class {c}, class {c + 1}", (c, c + 1)) for c in range(0, 10, 2))
    for heads in ("multi", "single"):
        split, grouped = (
            split_stream(tiny, heads=heads),
            grouped_stream(replace(tiny, groups=groups), heads=heads),
        )
        assert grouped.x.equal(split.x)
        assert grouped.y.equal(split.y)
        assert grouped.task_names == split.task_names
        assert all(a.equal(b) for a, b in zip(grouped.train, split.train, strict=True))


def test_what_does_not_fit_is_named(tmp_path):
    settings = {"kind": "grouped", "dataset": "omniglot"}
    with data_fails(tmp_path, "images_background"):
        build_stream(settings, tmp_path)
    as_arrays(tmp_path)
    with fails("tasks", "3"):
        build_stream(settings | {"tasks": 50}, tmp_path)
    with fails("class_order"):
        build_stream(settings | {"class_order": [2, 1, 0]}, tmp_path)
    with data_fails("digits", "split"):
        build_stream(settings | {"dataset": "digits"})
    table = tmp_path / "omniglot" / "alphabets.csv"
    table.write_text(table.read_text().replace("Greek,4,5,2", "Greek,4,8,5"))
    with data_fails(table, "Greek"):
        build_stream(settings, tmp_path)


def test_a_character_with_a_drawing_too_few_is_named(tmp_path):
    as_folders(tmp_path)
    path = tmp_path / "omniglot" / "images_background" / "Latin" / "character02"
    next(path.glob("*.png")).unlink()
    with data_fails(path):
        load_dataset("omniglot", tmp_path)


def test_the_first_alphabets_are_a_stream_too(tmp_path):
    as_arrays(tmp_path)
    settings = {"stream.first_tasks": 2, "stream.tasks": 3, "stream.kind": "grouped"}
    (run,) = plan("omniglot-alphabets", ["naive"], [0], settings)
    run = run.on_data(tmp_path)
    assert run.stream.checksum == load_dataset("omniglot", tmp_path).checksum


def test_all_alphabets_are_there(real_data):
    stream = build_stream({"kind": "grouped", "dataset": "omniglot", "flatten": False}, real_data)
    assert stream.n_tasks == 50
    assert sum(map(len, stream.task_classes)) == 1623
    assert stream.n_classes == 55
    assert sum(map(len, stream.test)) == 1623 * 4
