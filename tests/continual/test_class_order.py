"""The order of the classes by the seed of a run, and statistics of the first task."""

import json

import pytest
import torch
from failing import refuses
from tiny_runs import accuracy_bytes, tiny_run

from vcl_radial.data.streams import build_stream, load_dataset, to_avalanche
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.runner import perform
from vcl_radial.tracks.continual.lane_runs import LaneRuns
from vcl_radial.tracks.continual.settings import StreamSettings
from vcl_radial.tracks.continual.track import Continual

SEED = {"stream.class_order": "seed"}
FIRST = {"stream.statistics": "first-task"}


def names(seed: int, **settings: object) -> tuple[str, ...]:
    known = {"kind": "split", "dataset": "digits", "class_order": "seed"}
    return build_stream(known | settings, seed=seed).task_names


def test_the_order_of_a_seed_is_a_permutation_that_stays_as_it_is() -> None:
    orders = [names(seed) for seed in range(5)]
    assert orders[0] == ("2, 8", "4, 9", "1, 6", "7, 3", "0, 5")  # NumPy's legacy generator
    assert len(set(orders)) == 5
    for order in orders:
        assert sorted(", ".join(order).split(", ")) == list("0123456789")


def test_the_order_depends_on_the_seed_of_the_run_alone() -> None:
    torch.manual_seed(5)
    others = {"heads": "single", "tasks": 10, "validation": 0.3, "split_seed": 9}
    assert ", ".join(names(3, **others)) == ", ".join(names(3))


def test_the_order_of_a_seed_is_the_same_stream_as_the_list_of_its_classes() -> None:
    known = {"kind": "split", "dataset": "digits"}
    of_seed = build_stream(known | {"class_order": "seed"}, seed=0)
    listed = build_stream(known | {"class_order": [2, 8, 4, 9, 1, 6, 7, 3, 0, 5]}, seed=1)
    for task in range(5):
        for part in ("train", "validation", "test"):
            assert torch.equal(of_seed.inputs(task, part), listed.inputs(task, part))
            assert torch.equal(of_seed.labels(task, part), listed.labels(task, part))


def test_with_one_head_a_label_is_the_place_in_the_order_of_the_seed() -> None:
    known = {"kind": "split", "dataset": "digits", "heads": "single", "class_order": "seed"}
    stream, data = build_stream(known, seed=0), load_dataset("digits")
    order = torch.tensor([2, 8, 4, 9, 1, 6, 7, 3, 0, 5])
    assert torch.equal(order[stream.y], torch.cat([data.train_y, data.test_y]))
    experiences = to_avalanche(stream).train_stream
    assert [e.classes_in_this_experience for e in experiences][1] == [2, 3]


def test_order_and_statistics_are_in_the_digest() -> None:
    digests = [tiny_run(**keys).digest() for keys in ({}, SEED, FIRST, SEED | FIRST)]
    assert len(set(digests)) == 4
    assert tiny_run(**SEED, seed=4).digest() == digests[1]  # a report has the seeds together


def test_runs_of_other_seeds_are_no_lanes_of_one_stream() -> None:
    runs = [
        tiny_run(method, seed=seed, **SEED)
        for seed in range(2)
        for method in ("radial-vcl", "gaussian-vcl")
    ]
    longer = tiny_run("radial-vcl", seed=1, epochs=3, **SEED)
    assert Continual().batches([*runs, longer], 8) == [
        *([r] for r in runs[:2]),
        [runs[2], longer],
        [runs[3]],
    ]
    recipes = [run.recipe for run in runs[::2]]
    with pytest.raises(ValueError, match="seed"):
        LaneRuns(StreamSettings(dataset="digits", class_order="seed"), recipes, [0, 1])


def test_runs_of_a_seed_have_its_tasks_alone_and_as_lanes(tmp_path) -> None:
    runs = [tiny_run("radial-vcl", seed=2, learning_rate=r, **SEED | FIRST) for r in (1e-3, 2e-3)]
    assert [
        end.fault for end in perform(runs, RunContext(tmp_path / "lanes"), jobs=1, lanes=2)
    ] == [None] * 2
    execute(Continual(), runs[0], RunContext(tmp_path / "alone"))
    for out in ("lanes", "alone"):
        environment = RunFolder(tmp_path / out, runs[0]).path / "environment.json"
        assert tuple(json.loads(environment.read_text())["tasks"]) == names(2)


def test_statistics_of_the_first_task_give_other_numbers(tmp_path) -> None:
    runs = tiny_run("naive"), tiny_run("naive", **FIRST)
    for run in runs:
        execute(Continual(), run, RunContext(tmp_path))
    first, second = (accuracy_bytes(run, tmp_path) for run in runs)
    assert first != second


def test_an_image_folder_takes_the_order_of_a_seed(tmp_path) -> None:
    from PIL import Image

    for name in "abcd":
        for number in range(10):
            path = tmp_path / "images" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (4, 4), 10 * number + ord(name)).save(path)
    keys = SEED | FIRST | {"stream.dataset": "image-folder", "stream.tasks": 2}
    runs = [tiny_run("naive", seed=seed, batch_size=4, **keys) for seed in (0, 1)]
    runs = [run.on_data(tmp_path / "images") for run in runs]
    assert runs[0].digest() == runs[1].digest()
    ends = perform(runs, RunContext(tmp_path / "runs", tmp_path / "images"), jobs=1, lanes=2)
    assert [end.fault for end in ends] == [None, None]
    tasks = [
        json.loads((RunFolder(tmp_path / "runs", run).path / "environment.json").read_text())[
            "tasks"
        ]
        for run in runs
    ]
    assert tasks[0] != tasks[1]


def test_a_run_with_permuted_pixels_has_no_order_of_classes(command) -> None:
    code, _, err = command(
        *("run", "permuted-mnist", "--method", "naive", "--set", "stream.class_order=seed")
    )
    assert code == 1
    assert len(err) == 1
    assert "class_order" in err[0]
    with refuses("class_order"):
        build_stream({"kind": "permuted", "dataset": "digits", "class_order": "seed"})
