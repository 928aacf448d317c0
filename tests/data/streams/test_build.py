from pathlib import Path

import pytest
import torch
from failing import data_fails, fails

from vcl_radial.data.streams import (
    build_stream,
    checksum,
    load_dataset,
    permuted_stream,
    split_stream,
)


def test_settings_give_the_stream_that_the_call_gives() -> None:
    settings = {
        "kind": "split",
        "dataset": "digits",
        "tasks": 2,
        "heads": "single",
        "class_order": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
        "validation": 0.2,
        "split_seed": 4,
    }
    built = build_stream(settings)
    called = split_stream(
        load_dataset("digits"),
        tasks=2,
        heads="single",
        class_order=range(9, -1, -1),
        validation=0.2,
        seed=4,
    )
    for task in range(2):
        for part in ("train", "validation", "test"):
            assert torch.equal(built.inputs(task, part), called.inputs(task, part))
            assert torch.equal(built.labels(task, part), called.labels(task, part))


def test_left_out_settings_take_the_defaults_of_the_kind() -> None:
    split = build_stream({"kind": "split", "dataset": "digits"})
    assert (split.n_tasks, split.multi_head) == (5, True)
    permuted = build_stream({"kind": "permuted", "dataset": "digits"})
    assert (permuted.n_tasks, permuted.multi_head) == (10, False)
    called = permuted_stream(load_dataset("digits"))
    assert torch.equal(permuted.inputs(9, "test"), called.inputs(9, "test"))


@pytest.mark.parametrize("kind", ["split", "permuted"])
@pytest.mark.parametrize("heads", ["multi", "single"])
def test_a_stream_that_ends_early_begins_as_the_whole_one(kind: str, heads: str) -> None:
    settings = {"kind": kind, "dataset": "digits", "tasks": 5, "heads": heads}
    whole, short = build_stream(settings), build_stream({**settings, "first_tasks": 2})
    assert (whole.n_tasks, short.n_tasks) == (5, 2)
    assert (short.n_classes, short.multi_head) == (whole.n_classes, whole.multi_head)
    assert short.task_names == whole.task_names[:2]
    for task in range(2):
        for part in ("train", "validation", "test"):
            assert torch.equal(short.inputs(task, part), whole.inputs(task, part))
            assert torch.equal(short.labels(task, part), whole.labels(task, part))
    with fails("first_tasks", 6, 5):
        build_stream({**settings, "first_tasks": 6})


def test_data_are_those_that_the_settings_are_of(idx_folder: Path) -> None:
    settings = {"kind": "split", "dataset": "idx-folder"}
    found = checksum("idx-folder", idx_folder)
    with_it = build_stream({**settings, "checksum": found}, idx_folder)
    assert torch.equal(with_it.x[0], build_stream(settings, idx_folder).x[0])
    with data_fails("idx-folder", found, "0123"):
        build_stream({**settings, "checksum": "0123"}, idx_folder)


@pytest.mark.parametrize(
    ("settings", "key", "named"),
    [
        ({"dataset": "digits"}, "kind", "missing"),
        ({"kind": "split"}, "dataset", "missing"),
        ({"kind": "spilt", "dataset": "digits"}, "kind", "split"),
        ({"kind": "split", "dataset": "digit"}, "dataset", "digits"),
        (
            {"kind": "split", "dataset": "digits", "task": 5},
            "key of the stream's settings",
            "tasks",
        ),
        ({"kind": "permuted", "dataset": "digits", "class_order": []}, "class_order", "split"),
        ({"kind": ["split"], "dataset": "digits"}, "kind", "['split']"),
    ],
)
def test_a_wrong_setting_is_named_with_the_nearest_right_one(
    settings: dict[str, object], key: str, named: str
) -> None:
    with fails(key, named):
        build_stream(settings)
