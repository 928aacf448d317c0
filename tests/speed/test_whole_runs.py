import json
import os
from dataclasses import replace

import pytest
from speed_rows import resized

from benchmarks.speed import run


def test_the_parts_of_a_command_are_read_from_the_folders_of_all_its_seeds(tmp_path):
    # Seed: the moments of spec and marker, seconds of training and evaluation.
    for seed, (begun, finished, training, evaluation) in enumerate(
        [(110.0, 125.0, 10.0, 4.0), (127.0, 145.0, 12.0, 5.0)]
    ):
        folder = tmp_path / "benchmark" / "method" / f"seed-{seed}"
        folder.mkdir(parents=True)
        seconds = {"training": training, "evaluation": evaluation}
        (folder / "environment.json").write_text(json.dumps({"seconds": seconds}))
        for name, moment in (("spec.toml", begun), ("done", finished)):
            (folder / name).touch()
            os.utime(folder / name, (moment, moment))
    assert run.parts_of(tmp_path, 100.0, 150.0) == {
        "evaluation, per cent of training": 100 * 9.0 / 22.0,
        "whole (s)": 50.0,
        "training (s)": 22.0,
        "evaluation (s)": 9.0,
        "checkpoints (s)": 2.0,
        "report (s)": 5.0,
        "start-up (s)": 12.0,  # before the first seed and between the two
    }


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_whole_command_is_held_against_fine_tuning_of_its_round_and_recipe(
    tiny, monkeypatch, repeats
):
    commands = []

    def of_round(method, recipe, setting):
        commands.append((recipe, method))
        whole = len(commands) * (2.0 if recipe == "tuned recipe" else 1.0)
        return {"whole (s)": whole}

    monkeypatch.setattr(run, "time_run", of_round)
    setting = replace(resized(tiny, run_recipes=tuple(run.RECIPES)), repeats=repeats)
    rows = run.measure(setting).rows
    ratios = {r.size: (r.low, r.high) for r in rows if r.metric == run.RATIO}
    orders = [[1, 2, 3, 4], [8, 7, 6, 5], [9, 10, 11, 12]][:repeats]  # when each was run
    for k, recipe in enumerate(run.RECIPES):
        expected = [places[2 * k] / places[2 * k + 1] for places in orders]
        assert ratios[recipe] == pytest.approx((min(expected), max(expected)))
    assert len(commands) == 4 * repeats


@pytest.mark.parametrize(("recipe", "tuned"), [("paper's recipe", False), ("tuned recipe", True)])
def test_a_command_asks_for_its_recipe_and_seeds(tiny, monkeypatch, recipe, tuned):
    commands = []
    monkeypatch.setattr(run, "seconds_of", commands.append)
    monkeypatch.setattr(run, "parts_of", lambda out, started, ended: {})
    run.time_run("radial-vcl", recipe, tiny)
    (command,) = commands
    assert ("--tuned" in command) == tuned
    assert command[command.index("--seeds") + 1] == "2"
