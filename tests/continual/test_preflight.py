"""What is wrong with runs is known before anything is imported or read."""

import pytest
import torch
from tiny_runs import tiny_run

from vcl_radial.data.published import PUBLISHED
from vcl_radial.data.streams import build_stream
from vcl_radial.data.streams.known import task_sizes
from vcl_radial.errors import UserError
from vcl_radial.tracks.continual.preflight import check_runs
from vcl_radial.tracks.continual.settings import StreamSettings


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
    ("settings", "words"),
    [
        ({"stream.tasks": 7}, "^split-digits-multi-head: stream.tasks = 7 does not divide the 10"),
        ({"stream.tasks": 10}, "stream.tasks = 10 leaves one class to each head"),
        ({"stream.first_tasks": 6}, "stream.first_tasks = 6 is more than the 5 tasks: use 5 at"),
        ({"stream.dataset": "idx-folder", "stream.first_tasks": 6}, "stream.first_tasks = 6 is"),
        ({"stream.validation": 0.001}, "stream.validation = 0.001 leaves 289 training and 0"),
        (
            {"stream.kind": "permuted", "stream.class_order": [1, 0]},
            'class_order: is of kind = "split", and a permuted task has all',
        ),
        ({"stream.kind": "permuted", "stream.class_order": "seed"}, "class_order: is of kind"),
        ({"hidden": []}, r"^naive: hidden = \[\]: heads of several tasks share a layer"),
        ({"batch_size": 257, "stream.class_order": "seed"}, "than the 25. training points"),
        ({"batch_size": 257}, "^naive: batch_size = 257 is more than the 256 training points"),
        ({"network": "nowhere:body"}, "network = 'nowhere:body': cannot import 'nowhere'"),
        ({"stream.kind": "random:nothing"}, "kind = 'random:nothing': 'random' has no 'nothing'"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings, words):
    with pytest.raises(UserError, match=words):
        check_runs([tiny_run(**settings)])


def test_what_only_the_data_of_a_user_tell_is_left_to_the_run():
    check_runs(
        [
            tiny_run(**{"stream.dataset": "idx-folder", "stream.tasks": 7}),
            tiny_run(batch_size=257, drop_last=False),
            tiny_run(**{"hidden": [], "stream.heads": "single"}),
        ]
    )
