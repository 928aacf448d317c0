import json
import math

import pytest

from vcl_radial.errors import DataError, UserError
from vcl_radial.tracks.regression import runner
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.units import (
    Score,
    Unit,
    finished_result,
    read_result,
    write_result,
)

TINY = {"steps": 6, "batch_size": 32, "eval_samples": 3}


def unit(name="mfvi", splits=(0, 1), slices=None, **keys):
    recipe = Recipe(**{"method": "variational", **TINY, **keys})
    return Unit(
        set="diabetes", method=name, recipe=recipe, splits=list(splits), slices=slices, data="sum"
    )


def perform(units, out, jobs=1, lanes=40):
    runner.perform(units, out, None, jobs=jobs, lanes=lanes, title="diabetes")


def scores(units, out):
    found = [read_result(each, out) for each in units]
    assert None not in found
    return [result[0] for result in found]


UNITS = [
    unit(),
    unit("fast", learning_rate=1e-2),
    unit("ridge", method="linear"),
    unit("in-sequence", slices=2),
]


def test_a_result_is_read_as_it_was_written_and_what_diverged_is_not_a_number(tmp_path):
    values = [Score(0, 0, "rmse", 1 / 3), Score(1, 0, "rmse", math.inf)]
    write_result(unit(), tmp_path, values, {"commit": "c"})
    (first, second), where = read_result(unit(), tmp_path)
    assert first == values[0]
    assert math.isnan(second.value)
    assert where == {"commit": "c"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"steps": 6', '"steps": 7'),
        lambda text: json.dumps(json.loads(text) | {"scores": [[0, 0, "rmse", 1.0]]}),
        lambda text: json.dumps(json.loads(text) | {"scores": [[0, "rmse"]]}),
    ],
)
def test_a_damaged_result_counts_as_not_finished(tmp_path, damage):
    write_result(unit(), tmp_path, [Score(k, 0, "rmse", 1.0) for k in (0, 1)], {})
    assert read_result(unit(), tmp_path) is not None
    path = unit().path(tmp_path)
    path.write_text(damage(path.read_text()))
    assert read_result(unit(), tmp_path) is None
    with pytest.raises(UserError, match=f"{path.name}: is gone or damaged; run the same command"):
        finished_result(unit(), tmp_path)


def test_what_decides_the_numbers_decides_the_file(tmp_path):
    others = [
        unit(splits=(0, 2)),
        unit(slices=2),
        unit(prior_scale=0.5),
        unit("other"),
        unit().model_copy(update={"seed": 1}),
        unit().model_copy(update={"validation": 0.2}),
    ]
    assert len({each.path(tmp_path) for each in [unit(), *others]}) == 1 + len(others)


def test_an_interrupted_command_goes_on_with_the_same_numbers(tmp_path, monkeypatch, capsys):
    perform(UNITS, tmp_path / "whole")
    execute, begun = runner.execute, []

    def interrupted(bundle, *args):
        begun.append(bundle)
        if len(begun) == 2:
            raise KeyboardInterrupt
        execute(bundle, *args)

    monkeypatch.setattr(runner, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        perform(UNITS, tmp_path / "parts")
    kept = [each for each in UNITS if read_result(each, tmp_path / "parts") is not None]
    assert 0 < len(kept) < len(UNITS)
    monkeypatch.undo()
    capsys.readouterr()
    perform(UNITS, tmp_path / "parts")
    assert f"{len(UNITS) - len(kept)} units to do, {len(kept)} kept" in capsys.readouterr().out
    assert scores(UNITS, tmp_path / "parts") == scores(UNITS, tmp_path / "whole")


@pytest.mark.processes
def test_worker_processes_give_the_same_numbers(tmp_path):
    for jobs in (1, 2):
        perform(UNITS[:2], tmp_path / str(jobs), jobs=jobs, lanes=2)
    assert scores(UNITS[:2], tmp_path / "1") == scores(UNITS[:2], tmp_path / "2")


@pytest.mark.processes
def test_a_workers_mistake_of_the_users_comes_through_in_its_words(tmp_path):
    missing = [unit(splits=[k]).model_copy(update={"set": "nowhere"}) for k in (0, 1)]
    with pytest.raises(DataError, match="nowhere"):
        runner.perform(missing, tmp_path, tmp_path, jobs=2, lanes=1, title="nowhere")


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_trained(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(runner, "execute", pytest.fail)
    with pytest.raises(UserError, match=r"file.*cannot be written"):
        perform(UNITS, tmp_path / "file" / "out")


def test_progress_is_a_share_that_never_exceeds_the_whole(monkeypatch):
    monkeypatch.setattr(runner, "_TOLD_EVERY", -1.0)
    told = []
    on_step = runner._share_of([unit(slices=2)], told.append)
    for steps in (3, 12, 64):  # of 12; the last chunk is told whole
        on_step(steps)
    assert told == [0.25, 1.0, 1.0]
