"""Data and task sequences that settings name as `package.module:function`."""

import pytest
import torch
from failing import data_fails, fails

from vcl_radial.data.streams import build_stream, checksum, load_dataset, split_stream
from vcl_radial.errors import UserError

CODE = """
from vcl_radial.data.streams import ImageData, load_dataset, split_stream


def digits(folder):
    data = load_dataset("digits")
    inverted = 16 - data.train_x
    return ImageData("inverted", inverted, data.train_y, 16 - data.test_x, data.test_y)


def from_folder(folder):
    raise FileNotFoundError(f"no digits in {folder}")


def backwards(data, *, tasks, heads, **settings):
    order = list(range(data.n_classes))[::-1]
    return split_stream(data, tasks=tasks, heads=heads, class_order=order, **settings)


def nothing(*args, **settings):
    return None


number = 3
"""


@pytest.fixture(autouse=True)
def _code(user_module):
    user_module("own_streams", CODE)


def test_own_data_are_cut_into_tasks_as_the_built_in_are():
    stream = build_stream({"kind": "split", "dataset": "own_streams:digits"})
    built_in = build_stream({"kind": "split", "dataset": "digits"})
    assert torch.equal(stream.y, built_in.y)
    assert torch.allclose(stream.x, -built_in.x, atol=1e-5)


def test_an_own_kind_is_called_with_the_keys_that_are_set():
    settings = {"tasks": 2, "heads": "single", "validation": 0.25, "split_seed": 3}
    stream = build_stream({"kind": "own_streams:backwards", "dataset": "digits", **settings})
    called = split_stream(
        load_dataset("digits"),
        tasks=2,
        heads="single",
        class_order=range(9, -1, -1),
        validation=0.25,
        seed=3,
    )
    for part in ("train", "validation", "test"):
        assert torch.equal(stream.rows(1, part), called.rows(1, part))
    assert stream.task_names == called.task_names


def test_settings_can_require_the_checksum_of_a_users_data():
    found = checksum("own_streams:digits")
    assert found == load_dataset("own_streams:digits").checksum
    settings = {"kind": "split", "dataset": "own_streams:digits"}
    assert build_stream({**settings, "checksum": found}).n_tasks == 5
    with data_fails("own_streams:digits", found, "0123"):
        build_stream({**settings, "checksum": "0123"})


def test_a_users_function_gets_the_data_folder(tmp_path):
    words = rf"no digits in {tmp_path} \(own_streams.py, line 12, in from_folder\)"
    with pytest.raises(UserError, match=words):
        load_dataset("own_streams:from_folder", tmp_path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dataset": "own_streams:nobody"}, "'own_streams' has no 'nobody'"),
        ({"dataset": "own_streams:number"}, "'own_streams:number' is no function, but int"),
        (
            {"dataset": "own_streams:nothing"},
            "gives NoneType, not a .*streams.ImageData",
        ),
        ({"dataset": "no_streams:digits"}, "cannot import 'no_streams'"),
        (
            {"kind": "own_streams:nothing"},
            "gives NoneType, not a .*streams.TensorStream",
        ),
        ({"kind": "own_streams:backwards"}, "missing 2 required keyword-only arguments"),
        ({"kind": "own_streams:backwards", "task": 3}, "'task' is unknown: .*tasks"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_key(settings, words):
    with pytest.raises(UserError, match=words):
        build_stream({"kind": "split", "dataset": "digits", **settings})


MISTAKEN = """
import dataclasses
from vcl_radial.data.streams import split_stream


def seen(data, **settings):
    stream = split_stream(data, **settings)
    return dataclasses.replace(stream, test=(*stream.test[:-1], stream.train[0][:7]))


def others(data, **settings):
    stream = split_stream(data, heads="single", **settings)
    return dataclasses.replace(stream, task_classes=((0, 1), (2, 4), *stream.task_classes[2:]))
"""


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        ("seen", "7 rows of test are in train too"),
        ("others", r"task 2 has labels [3] that its task_classes lack"),
    ],
)
def test_a_users_stream_with_misleading_scores_is_refused(function, fault, user_module):
    user_module("mistaken_streams", MISTAKEN)
    with fails(f"kind = 'mistaken_streams:{function}'", fault):
        build_stream({"kind": f"mistaken_streams:{function}", "dataset": "digits"})
