"""Sweeps that really train, on a few digits."""

import dataclasses
from pathlib import Path

import pandas as pd
import pytest
from tiny_sweeps import plans_of, swept, trials_bytes

from vcl_radial.data.streams import build_stream, datasets
from vcl_radial.errors import UserError
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import read_spec
from vcl_radial.sweeps import driver
from vcl_radial.sweeps.folder import SweepFolder
from vcl_radial.sweeps.results import read_results
from vcl_radial.tracks.continual.track import Continual


def swept_until(tasks: int, monkeypatch: pytest.MonkeyPatch, out: Path, **changes) -> None:
    """A sweep with Ctrl-C at the end of the so-manieth task."""
    left = [tasks]
    original = driver.Driver.on_step

    def on_step(self, run, step):
        original(self, run, step)
        left[0] -= step.score is not None
        if left[0] == 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(driver.Driver, "on_step", on_step)
        with pytest.raises(KeyboardInterrupt):
            swept(out, **changes)


def test_the_score_is_the_mean_of_the_validation_scores_over_the_seeds(tmp_path: Path) -> None:
    (study,) = swept(tmp_path, trials=1, seeds=2)
    folder = SweepFolder(tmp_path / "tiny")
    scores = []
    for run in study.trials[0].runs:
        path = folder.run(run).path
        assert read_spec(path)["evaluate_on"] == "validation"
        tidy = pd.read_csv(path / "accuracy.csv")
        last = tidy[(tidy.task_trained == 2) & (tidy.metric == "accuracy")]
        scores.append(last["value"].mean())
    result = study.results[0]
    assert result.score == pytest.approx(sum(scores) / 2, rel=1e-12)
    assert result.standard_error == pytest.approx(abs(scores[0] - scores[1]) / 2, rel=1e-12)


def test_with_resplit_every_seed_holds_out_other_validation_data(tmp_path: Path) -> None:
    (fixed,) = swept(tmp_path / "fixed", trials=1, seeds=3)
    (study,) = swept(tmp_path / "other", trials=1, seeds=3, resplit=True)
    runs = study.trials[0].runs
    assert [run.stream.split_seed for run in runs] == [0, 1, 2]
    streams = [build_stream(run.stream.model_dump(exclude_none=True)) for run in runs]
    held_out = [set(stream.rows(0, "validation").tolist()) for stream in streams]
    assert held_out[0] != held_out[1] != held_out[2]
    assert len({tuple(stream.rows(0, "test").tolist()) for stream in streams}) == 1
    assert study.results[0].score != fixed.results[0].score
    # The report finds the runs, and another score of them.
    ranked = read_results(tmp_path / "other" / "tiny", "average_nll")
    assert ranked.searched[0].trials[0].score is not None
    again = swept(tmp_path / "other", trials=1, seeds=3, resplit=True)
    assert again[0].results[0].score == study.results[0].score


def test_nothing_of_a_sweep_depends_on_the_test_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"trials": 2, "method": ["naive", "radial-vcl"], "pruning": {"after": 1}}
    swept(tmp_path / "true", **changes)
    load = datasets._LOADERS["digits"]

    def poisoned(*arguments):
        data = load(*arguments)
        wrong = (data.test_y + 1) % data.n_classes
        return dataclasses.replace(data, test_x=255 - data.test_x, test_y=wrong)

    monkeypatch.setitem(datasets._LOADERS, "digits", poisoned)
    swept(tmp_path / "poisoned", **changes)
    assert files_of(tmp_path / "poisoned") == files_of(tmp_path / "true")
    # A run on test data does see the difference.
    plan = plans_of(**changes)[0]
    run = plan.run({"learning_rate": 0.01}, 0).model_copy(update={"evaluate_on": "test"})
    execute(Continual(), run, RunContext(tmp_path / "poisoned"))
    monkeypatch.undo()
    execute(Continual(), run, RunContext(tmp_path / "true"))
    assert files_of(tmp_path / "poisoned") != files_of(tmp_path / "true")


def files_of(out: Path) -> dict[Path, bytes]:
    names = ("trials.csv", "accuracy.csv", "metrics.json")
    return {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.name in names}


def test_stopped_within_a_run_it_goes_on_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    changes = {"trials": 3, "pruning": {"after": 1}, "at_once": 1}
    swept(tmp_path / "undisturbed", **changes)
    swept_until(1, monkeypatch, tmp_path / "disturbed", **changes)
    (checkpoint,) = tmp_path.glob("disturbed/**/checkpoint.pt")
    swept_until(2, monkeypatch, tmp_path / "disturbed", **changes)
    assert not checkpoint.exists()
    swept(tmp_path / "disturbed", **changes)
    assert trials_bytes(tmp_path / "disturbed") == trials_bytes(tmp_path / "undisturbed")


PICKY = """
from vcl_radial.errors import UserError
from vcl_radial.integrations.avalanche.methods import Naive

class Picky(Naive):
    def __init__(self, *, picky="", **settings):
        if picky == "at once":
            raise UserError("it is too picky")
        super().__init__(**settings)
        self.picky = picky

    def train(self, *args, **settings):
        if self.picky:
            raise UserError("it is too picky")
        return super().train(*args, **settings)
"""


def test_trials_that_diverge_or_cannot_be_carried_out_are_rows_with_the_reason(
    tmp_path: Path, user_module
) -> None:
    user_module("picky", PICKY)
    search = {"learning_rate": [1e-3, 1e30], "options.picky": ["", "later"]}
    changes = {"fixed__strategy": "picky:Picky", "search": search}
    (study,) = swept(tmp_path, kind="grid", trials=None, **changes)
    table = pd.read_csv(tmp_path / "tiny" / "trials.csv")
    assert list(table.outcome) == ["finished", "failed", "diverged", "failed"]
    assert "it is too picky" in table.words[1]
    assert "of task 1" in table.words[2] or "not numbers" in table.words[2]
    assert list(table.score.isna()) == [False, True, True, True]
    assert study.best() == 0


def test_an_option_that_a_method_cannot_have_is_refused_before_any_trial(
    tmp_path: Path, user_module
) -> None:
    user_module("picky", PICKY)
    search = {"options.picky": ["", "at once"]}
    with pytest.raises(UserError, match="naive: it is too picky"):
        swept(tmp_path, kind="grid", trials=None, fixed__strategy="picky:Picky", search=search)
    assert not list(tmp_path.glob("**/trials.csv"))


def test_a_value_that_no_run_could_have_is_refused_before_any_trial(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="batch_size = 5000"):
        swept(tmp_path, kind="grid", trials=None, search={"batch_size": [16, 5000]})
    assert not list(tmp_path.glob("*"))


def test_hopeless_trials_are_given_up_after_a_task(tmp_path: Path) -> None:
    (study,) = swept(
        tmp_path,
        kind="grid",
        trials=None,
        seeds=2,
        at_once=1,
        search={"learning_rate": [1e-2, 1e-9]},
        pruning={"quantile": 0.01, "after": 1},
    )
    assert [study.results[n].outcome for n in range(2)] == ["finished", "pruned"]
    assert "after task 1" in study.results[1].words
    given_up, other_seed = study.trials[1].runs
    folder = SweepFolder(tmp_path / "tiny")
    assert folder.run(given_up).checkpoint.exists()
    assert not folder.run(other_seed).path.exists()


def test_lanes_do_what_single_runs_do(tmp_path: Path) -> None:
    changes = {"trials": 2, "seeds": 2, "fixed__epochs": 5}
    (alone,) = swept(tmp_path / "alone", **changes)
    (together,) = swept(tmp_path / "lanes", lanes=4, **changes)
    for number, result in alone.results.items():
        # One of the 29 images of a task, in one task of one seed, is 0.9.
        assert together.results[number].score == pytest.approx(result.score, abs=2.0)
