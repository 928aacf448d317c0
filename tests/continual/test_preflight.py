"""What is wrong with runs is known before anything is imported or read."""

import pytest
import torch
from failing import refuses
from tiny_runs import tiny_run

from vcl_radial.data.published import PUBLISHED
from vcl_radial.data.streams import build_stream
from vcl_radial.data.streams.known import task_sizes
from vcl_radial.tracks.continual.settings import StreamSettings
from vcl_radial.tracks.continual.track import Continual


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tasks": 2, "validation": 0.0},
        {"class_order": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], "validation": 0.25},
        {"tasks": 10, "heads": "single", "class_order": [1, 0, *range(2, 10)]},
        {"kind": "permuted", "tasks": 3},
        {"first_tasks": 2},
        {"class_order": "seed"},
        {"class_order": "seed", "tasks": 2, "validation": 0.25},
        {"kind": "permuted", "tasks": 3, "first_tasks": 1},
    ],
)
def test_the_sizes_of_tasks_that_are_known_are_those_of_the_data(settings):
    stream = StreamSettings(dataset="digits", **settings).model_dump(exclude_none=True)
    for seed in (0, 7):
        assert task_sizes(stream, seed) == list(map(len, build_stream(stream, seed=seed).train))


def test_the_counts_of_the_digits_are_those_of_scikit_learn():
    from vcl_radial.data.streams import load_dataset

    counts = torch.bincount(load_dataset("digits").train_y).tolist()
    assert tuple(counts) == tuple(PUBLISHED["digits"].train_counts)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"stream.tasks": 7}, ["naive: stream.tasks = 7", "10 classes"]),
        ({"stream.tasks": 10}, ["stream.tasks = 10"]),
        ({"stream.first_tasks": 6}, ["stream.first_tasks = 6", "5 tasks"]),
        (
            {"stream.dataset": "idx-folder", "stream.first_tasks": 6},
            ["stream.first_tasks = 6", "5 tasks"],
        ),
        ({"stream.validation": 0.001}, ["stream.validation = 0.001", "289 training"]),
        (
            {"stream.kind": "permuted", "stream.class_order": [1, 0]},
            ["class_order", 'kind = "split"'],
        ),
        ({"stream.kind": "permuted", "stream.class_order": "seed"}, ["class_order"]),
        ({"hidden": []}, ["naive: hidden = []"]),
        ({"batch_size": 257, "stream.class_order": "seed"}, ["batch_size = 257", "25"]),
        ({"batch_size": 257}, ["naive: batch_size = 257", "256 training points"]),
        ({"network": "nowhere:body"}, ["network = 'nowhere:body'"]),
        ({"stream.kind": "random:nothing"}, ["kind = 'random:nothing'", "'nothing'"]),
    ],
)
def test_settings_that_do_not_fit_are_named(settings, named):
    with refuses(*named):
        Continual().check_runs([tiny_run(**settings)])


def test_what_only_the_data_of_a_user_tell_is_left_to_the_run():
    Continual().check_runs(
        [
            tiny_run(**{"stream.dataset": "idx-folder", "stream.tasks": 7}),
            tiny_run(batch_size=257, drop_last=False),
            tiny_run(**{"hidden": [], "stream.heads": "single"}),
        ]
    )
