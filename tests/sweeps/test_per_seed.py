"""Sweeps that choose settings for every seed by itself."""

import argparse
import shlex
from pathlib import Path

import pandas as pd
import pytest
from made_up import made_up
from tiny_sweeps import DIGITS, plans_of, trials_bytes

from vcl_radial.cli import arguments
from vcl_radial.cli import run as run_command
from vcl_radial.errors import UserError
from vcl_radial.runs import planning
from vcl_radial.sweeps.report import write_sweep_report
from vcl_radial.tracks.continual.track import Continual

FIXED = {"hidden": [8], "eval_samples": 2, "epochs": 4, "stream": {"tasks": 2}}
PER_SEED = {
    "kind": "grid",
    "trials": None,
    "per_seed": True,
    "seeds": 3,
    "fixed": FIXED,
    "search": {"learning_rate": [0.1, 0.2], "options.strength": [1.0, 2.0]},
    "method": "lwf",
}


def suited(run, task: int) -> float:
    """Odd seeds learn best at 0.1 and with strength 2, even ones at 0.2 and with strength 1."""
    at = (run.recipe.learning_rate, run.recipe.options["strength"])
    return 90.0 if at == ((0.1, 2.0) if run.seed % 2 else (0.2, 1.0)) else 60.0


def planned(recipe: Path, seeds: int, **settings):
    return planning.plan(DIGITS, [str(recipe)], range(seeds), {"stream.tasks": 2, **settings})


def test_every_seed_gets_the_settings_that_are_best_for_it(tmp_path: Path) -> None:
    made_up(tmp_path, accuracy=suited, **PER_SEED)
    write_sweep_report(tmp_path / "tiny", tmp_path / "report")
    recipe = tmp_path / "report" / DIGITS / "lwf.toml"
    runs = planned(recipe, 3)
    assert [run.recipe.learning_rate for run in runs] == [0.2, 0.1, 0.2]
    assert [run.recipe.options["strength"] for run in runs] == [1.0, 2.0, 1.0]
    # What a command sets itself comes last.
    assert planned(recipe, 1, learning_rate=0.5)[0].recipe.learning_rate == 0.5
    with pytest.raises(UserError, match=r"has no settings for 3 .*; search for them with a sweep"):
        planned(recipe, 4)
    page = (tmp_path / "report" / DIGITS / "summary.md").read_text()
    assert "| lwf | learning_rate = 0.2, options.strength = 1.0 | 2 |" in page
    parser = argparse.ArgumentParser()
    run_command.add(parser)
    (line,) = [line for line in page.splitlines() if line.startswith("vcl-radial run")]
    options = parser.parse_args(shlex.split(line)[2:])
    assert (options.seeds, options.methods) == (range(3), [str(recipe)])
    settings = dict(map(arguments.parse_setting, options.settings))
    assert [run.recipe.hidden for run in planned(recipe, 3, **settings)] == [[8]] * 3


def test_the_scores_of_a_seed_choose_for_that_seed_alone(tmp_path: Path) -> None:
    (zero, one, two), _ = made_up(tmp_path / "one", accuracy=suited, **PER_SEED)

    def otherwise(run, task: int) -> float:
        return 150.0 - suited(run, task) if run.seed == 1 else suited(run, task)

    others, _ = made_up(tmp_path / "other", accuracy=otherwise, **PER_SEED)
    assert [study.best() for study in others][::2] == [zero.best(), two.best()]
    assert others[1].best() != one.best()
    assert [{run.seed for t in s.trials for run in t.runs} for s in others] == [{0}, {1}, {2}]


def test_more_seeds_are_searched_for_without_those_of_before_again(tmp_path: Path) -> None:
    _, first = made_up(tmp_path, **{**PER_SEED, "seeds": 1})
    _, more = made_up(tmp_path, jobs=3, **PER_SEED)
    assert len(first.done) == 4
    assert sorted(run.seed for run in more.done) == [1] * 4 + [2] * 4
    made_up(tmp_path / "at once", **PER_SEED)
    assert trials_bytes(tmp_path) == trials_bytes(tmp_path / "at once")
    table = pd.read_csv(tmp_path / "tiny" / "trials.csv")
    assert list(table.chosen_for) == [0] * 4 + [1] * 4 + [2] * 4


def test_a_configuration_is_tried_with_a_share_of_the_epochs_and_its_recipe_has_all(
    tmp_path: Path,
) -> None:
    shares = {"shares": {"epochs": 0.5}}
    _, executor = made_up(tmp_path, accuracy=suited, **PER_SEED, **shares)
    assert {run.recipe.epochs for run in executor.done} == {2}
    write_sweep_report(tmp_path / "tiny", tmp_path / "report")
    assert {run.recipe.epochs for run in planned(tmp_path / "report" / DIGITS / "lwf.toml", 3)} == {
        4
    }
    assert (tmp_path / "report" / DIGITS / "trials.csv").read_text().count(",finished,") == 12
    with pytest.raises(UserError, match=r"shares\.posterior: "):
        plans_of(**PER_SEED, shares={"posterior": 0.5})


def test_of_a_benchmark_of_several_data_sets_each_seed_of_each_is_chosen_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def variants(self, tables, benchmark=None):
        return [{**tables, "stream": {**tables["stream"], "split_seed": s}} for s in (5, 6)]

    def selection_unit(self, tables):
        return f"set-{tables['stream']['split_seed']}/{tables['seed']}"

    def accuracy(run, task: int) -> float:
        return 90.0 if (run.recipe.learning_rate == 0.1) == (run.stream.split_seed == 5) else 60.0

    monkeypatch.setattr(Continual, "variants", variants)
    monkeypatch.setattr(Continual, "selection_unit", selection_unit)
    made_up(tmp_path, accuracy=accuracy, **{**PER_SEED, "seeds": 2})
    write_sweep_report(tmp_path / "tiny", tmp_path / "report")
    runs = planned(tmp_path / "report" / DIGITS / "lwf.toml", 2)
    rates = [(run.seed, run.stream.split_seed, run.recipe.learning_rate) for run in runs]
    assert rates == [(0, 5, 0.1), (0, 6, 0.2), (1, 5, 0.1), (1, 6, 0.2)]
    with pytest.raises(UserError, match=r"has 2 runs per seed.* per_seed = true"):
        plans_of(**{**PER_SEED, "per_seed": False})
