import argparse
import shlex
import shutil
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from made_up import from_its_settings, made_up
from tiny_sweeps import DIGITS, trials_bytes

from vcl_radial.cli import arguments
from vcl_radial.cli import run as run_command
from vcl_radial.errors import UserError
from vcl_radial.runs import catalogue, planning
from vcl_radial.sweeps import figures, results
from vcl_radial.sweeps.folder import SweepFolder, read_described
from vcl_radial.sweeps.levels import levels, shares
from vcl_radial.sweeps.recipes import command_for
from vcl_radial.sweeps.report import write_sweep_report
from vcl_radial.sweeps.results import (
    SearchResult,
    SweepResults,
    TrialResult,
    read_results,
    study_of,
)

SEARCH = {
    "learning_rate": {"low": 1e-4, "high": 1e-1, "log": True},
    "batch_size": {"low": 8, "high": 64},
    "hidden": [[8], [8, 16]],
    "drop_last": [True, False],
    "options.heads": {"choices": [True, False], "when": {"drop_last": True}},
}
CHANGES = {
    "method": "l2",
    "trials": 8,
    "seeds": 2,
    "fixed": {"epochs": 1, "eval_samples": 2, "stream": {"validation": 0.2, "first_tasks": 2}},
    "search": SEARCH,
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory):
    out = tmp_path_factory.mktemp("swept")
    (study,), _ = made_up(out, **CHANGES)
    return study, out / "tiny"


def searched(scores: list[float | None], chance: float = 50.0) -> SearchResult:
    trials = [
        TrialResult("diverged" if s is None else "finished", s, number=n, seconds=1.0)
        for n, s in enumerate(scores)
    ]
    return SearchResult(Path(), {"benchmark": "b", "method": "m"}, trials, chance=chance)


def test_what_is_read_is_what_was_tried(swept) -> None:
    study, path = swept
    (one,) = read_results(path).searched
    assert len(one.trials) == len(study.trials) == 8
    assert any("options.heads" not in trial.parameters for trial in one.trials)
    for trial in one.trials:
        assert trial.parameters == study.trials[trial.number].parameters
        assert trial.score == study.results[trial.number].score
        assert trial.standard_error == study.results[trial.number].standard_error
        assert trial.seconds == 4.0
    assert one.chance == 50.0
    best = one.best
    assert best is not None
    assert best.number == study.best()


@pytest.mark.slow
@pytest.mark.drawn
def test_the_command_of_the_report_runs_the_best_configuration_on_test_data(
    swept, tmp_path: Path
) -> None:
    study, path = swept
    write_sweep_report(path, tmp_path)
    (one,) = (swept_results := read_results(path)).searched
    best = one.best
    assert best is not None
    parser = argparse.ArgumentParser()
    run_command.add(parser)
    recipe = tmp_path / DIGITS / "best-l2.toml"
    _, _, *command = shlex.split(command_for(swept_results, one, recipe, 5, best.parameters))
    options = parser.parse_args(command)
    settings = dict(map(arguments.parse_setting, options.settings))
    runs = planning.plan(options.benchmark, options.methods, options.seeds, settings)
    wanted = study.plan.run(best.parameters, 0)
    assert len(runs) == 5
    assert {run.evaluate_on for run in runs} == {"test"}
    # What the search has seen of the stream is not all that is run.
    assert (runs[0].stream.first_tasks, wanted.stream.first_tasks) == (None, 2)
    assert runs[0].stream == wanted.stream.model_copy(update={"first_tasks": None})
    # A prediction is made as the method does it, not with the few samples of the sweep.
    assert wanted.recipe.eval_samples == 2
    default = planning.plan(DIGITS, ["l2"], [0])[0].recipe.eval_samples
    assert runs[0].recipe == wanted.recipe.model_copy(update={"eval_samples": default})
    folder = tmp_path / DIGITS
    page = (folder / "summary.md").read_text()
    for stem in ("history", "distribution", "cost", "slice-l2", "parallel-l2", "importance-l2"):
        assert f"({stem}.png)" in page
        assert (folder / f"{stem}.png").stat().st_size > 1000
        assert (folder / f"{stem}.svg").exists()
    table = pd.read_csv(folder / "trials.csv")
    assert list(table.score) == sorted(table.score, reverse=True)
    assert table.trial[0] == best.number


@pytest.mark.drawn
def test_the_plots_of_optuna_show_every_trial_with_a_score(swept) -> None:
    study, path = swept
    results = read_results(path)
    (one,) = results.searched
    shown = study_of(one, results.keys, results.direction)
    scores = [result.score for _, result in sorted(study.results.items())]
    assert [trial.value for trial in shown.trials] == scores
    (axes,) = figures.history([shown], "accuracy (%)").axes
    assert [*axes.collections[0].get_offsets()[:, 1]] == scores
    assert [*axes.lines[0].get_ydata()] == [*np.maximum.accumulate(scores)]
    panels = figures.slices(shown, "accuracy (%)").axes[:-1]  # the last one is the colour bar
    drawn = {panel.get_xlabel(): len(panel.collections[0].get_offsets()) for panel in panels}
    tried = [key for trial in study.trials for key in trial.parameters]
    assert drawn == {key: tried.count(key) for key in SEARCH}
    (lines,) = (c for c in figures.parallel(shown, "accuracy (%)").axes[0].collections)
    assert len(lines.get_segments()) == 8
    (axes,) = figures.importance(shown, "accuracy (%)").axes
    assert {label.get_text() for label in axes.get_yticklabels()} == {*SEARCH}
    assert mpl.style.library["ggplot"]  # the style of the user's own figures is as before


def test_a_trial_without_a_score_keeps_its_place() -> None:
    one = searched([70.0, None, 80.0])
    (axes,) = figures.history([study_of(one, {}, "maximize")], "accuracy (%)").axes
    assert axes.collections[0].get_offsets().tolist() == [[0.0, 70.0], [2.0, 80.0]]


def test_the_first_configurations_are_written_in_their_order(swept, tmp_path: Path) -> None:
    _, path = swept
    write_sweep_report(path, tmp_path, top=3)
    (one,) = read_results(path).searched
    names = ["best-l2.toml", "best-l2-2.toml", "best-l2-3.toml"]
    assert {found.name for found in tmp_path.glob("*/best-*")} == set(names)
    wanted = sorted(one.trials, key=lambda trial: trial.score or 0.0, reverse=True)
    for name, trial in zip(names, wanted, strict=False):
        recipe = catalogue.load("method", str(tmp_path / DIGITS / name)).table
        for key in ("learning_rate", "batch_size", "hidden", "drop_last"):
            assert recipe[key] == trial.parameters[key]
    (tmp_path / DIGITS / "best-l2-4.toml").write_text("# the user's own")
    (tmp_path / DIGITS / "best-l2-2.toml").write_text("# edited by the user")
    write_sweep_report(path, tmp_path, by="backward_transfer")
    left = {"best-l2.toml", "best-l2-2.toml", "best-l2-4.toml"}
    assert {path.name for path in tmp_path.glob("*/best-*")} == left


def test_trials_can_be_ranked_by_another_score_of_their_runs(swept, tmp_path: Path) -> None:
    study, path = swept

    def transfer(number: int, seed: int) -> float:
        run = study.plan.run(study.trials[number].parameters, seed)
        return from_its_settings(run, 2) - from_its_settings(run, 1)

    (one,) = read_results(path, "backward_transfer").searched
    order = sorted(range(8), key=lambda n: transfer(n, 0) + transfer(n, 1), reverse=True)
    assert [trial.number for trial in one.ranked] == order
    (by_accuracy,) = read_results(path).searched
    assert [trial.number for trial in by_accuracy.ranked] != order
    assert one.best.number == order[0]
    (by_forgetting,) = read_results(path, "forgetting").searched
    scores = [trial.score for trial in by_forgetting.ranked]
    assert scores == sorted(scores)  # the lower the better
    for trial in one.trials:
        pair = transfer(trial.number, 0), transfer(trial.number, 1)
        assert trial.score == pytest.approx(sum(pair) / 2)
        assert trial.standard_error == pytest.approx(abs(pair[0] - pair[1]) / 2)
    write_sweep_report(path, tmp_path, by="backward_transfer")
    folder = tmp_path / DIGITS
    assert f"trial {order[0]},\n# backward_transfer" in (folder / "best-l2.toml").read_text()
    page = (folder / "summary.md").read_text()
    assert "search for average_accuracy, ranked by backward_transfer (maximize it)" in page
    with pytest.raises(UserError, match="'nll'"):
        read_results(path, "nll")


def test_a_trial_without_all_of_its_runs_is_not_ranked_by_another_score(
    swept, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, path = swept
    copy = tmp_path / path.name
    shutil.copytree(path, copy)
    lost = SweepFolder(copy).run(study.plan.run(study.trials[3].parameters, 1)).path
    shutil.rmtree(lost)
    (one,) = read_results(copy, "backward_transfer").searched
    assert {t.number for t in one.trials if t.score is None} == {3}
    assert f"{lost}: not finished; trial 3 has no backward_transfer" in capsys.readouterr().out


def test_a_tenth_and_nine_tenths_of_the_way_from_chance_to_the_best_are_the_levels() -> None:
    methods = [searched([50.0, 54.0, 90.0]), searched([None, 86.0])]
    level = levels(methods)
    assert level is not None
    assert (level.nothing, level.good) == pytest.approx((54.0, 86.0))
    assert levels([searched([None])]) is None


def test_a_sweep_without_anything_learnt_has_levels_of_its_own() -> None:
    assert levels([searched([50.0])]) is not None


def test_a_diverged_configuration_has_learnt_nothing_and_one_given_up_does_not_count() -> None:
    one = searched([50.0, 70.0, 70.0, 90.0, None])
    one.trials.append(TrialResult("pruned", number=5))
    level = levels([one])
    assert level is not None
    assert shares(one, level) == (40.0, 20.0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_curve_is_the_share_of_configurations_that_reach_a_score(direction) -> None:
    values = np.random.default_rng(0).integers(50, 90, 20) + 0.5
    one = searched([*values.tolist(), None, None])
    higher = direction == "maximize"
    (line,) = figures.distribution([one], "forgetting", None, direction).axes[0].lines
    x, y = map(np.asarray, line.get_data())
    for score in range(int(values.min()) + 1, int(values.max()) + 1):
        # A step has the height of its right end or of its left one.
        drawn = y[np.searchsorted(x, score)] if higher else y[np.searchsorted(x, score) - 1]
        reached = values >= score if higher else values <= score
        assert drawn == pytest.approx(reached.sum() / 22)


def test_without_a_finished_trial_there_is_a_report_still(tmp_path: Path) -> None:
    nothing = {**CHANGES, "trials": 2, "seeds": 1}
    with np.errstate(invalid="ignore"):
        made_up(tmp_path, accuracy=lambda run, task: float("inf"), **nothing)
    write_sweep_report(tmp_path / "tiny", tmp_path / "report")
    page = (tmp_path / "report" / DIGITS / "summary.md").read_text()
    assert "| l2 | 2 | 2 |" in page
    assert not list((tmp_path / "report").glob("**/best-*"))


def test_a_sweep_whose_data_are_of_another_track_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(tmp_path, trials=1)
    (start,) = (table := read_described(tmp_path / "tiny" / "sweep.toml"))["start"]
    start["data"] = start.pop("stream")
    monkeypatch.setattr(results, "read_described", lambda path: table)
    with pytest.raises(UserError, match=r"sweep\.toml: "):
        read_results(tmp_path / "tiny")


def test_what_is_no_sweep_or_damaged_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{tmp_path.name}: "):
        read_results(tmp_path)
    made_up(tmp_path, trials=2)
    table, path = trials_bytes(tmp_path), tmp_path / "tiny" / "trials.csv"
    for torn in (table[:-40], table.replace(b"finished", b"finished,1,2,3,4"), b"\xff\xfe"):
        path.write_bytes(torn)
        with pytest.raises(UserError, match=r"trials\.csv: "):
            read_results(tmp_path / "tiny")
    path.write_bytes(table)
    assert isinstance(read_results(tmp_path / "tiny"), SweepResults)
    sweep = tmp_path / "tiny" / "sweep.toml"
    sweep.write_bytes(sweep.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"sweep\.toml: "):
        read_results(tmp_path / "tiny")
