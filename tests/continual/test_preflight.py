"""What is wrong with runs is known before any of them trains."""

import pytest
from failing import refuses
from tiny_runs import tiny_run

from vcl_radial.tracks.continual.track import Continual


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"stream.tasks": 7}, ["stream.tasks = 7", "10 classes"]),
        ({"stream.tasks": 10}, ["stream.tasks = 10"]),
        ({"stream.first_tasks": 6}, ["stream.first_tasks = 6", "5 tasks"]),
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
    run = tiny_run(**settings)
    with refuses(*named):
        Continual().check_runs([run])
        Continual().check_data([run], None)


@pytest.mark.parametrize(
    "settings",
    [{"batch_size": 257, "drop_last": False}, {"hidden": [], "stream.heads": "single"}],
)
def test_what_fits_is_accepted(settings):
    run = tiny_run(**settings)
    Continual().check_runs([run])
    Continual().check_data([run], None)


def test_what_only_the_data_of_a_user_tell_is_left_to_the_run():
    Continual().check_runs([tiny_run(**{"stream.dataset": "idx-folder", "stream.tasks": 7})])
