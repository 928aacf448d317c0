"""`run --dry-run`: the recipes and the costs of runs of every track, before any trains."""

from pathlib import Path

import pytest
import torch

from vcl_radial.cli import main
from vcl_radial.reporting.costs import cost_lines
from vcl_radial.runs.catalogue import load, track_of
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.planning import plan
from vcl_radial.runs.track import Cost
from vcl_radial.system.memory import peak, reset_peak

DIGITS = {"hidden": [8], "epochs": 2, "stream.first_tasks": 3}
TABLE = {"steps": 40, "hidden": [8], "data.slices": 3}


def costs_of(runs):
    track = track_of(load("benchmark", runs[0].benchmark))
    return list(track.costs([[run] for run in runs], None, "cpu"))


def trained(run):
    track = track_of(load("benchmark", run.benchmark))
    training = track.open(run, RunContext(Path(), None), lambda step: None)
    for _ in training.steps():
        pass
    return track, training


@pytest.mark.parametrize("method", ["radial-vcl", "ewc", "replay", "joint"])
@pytest.mark.parametrize("heads", ["multi", "single"])
def test_steps_of_a_sequence_are_those_that_a_run_makes(method, heads):
    (run,) = plan(f"split-digits-{heads}-head", [method], [0], DIGITS)
    (cost,) = costs_of([run])
    _, training = trained(run)
    extra = training.iterations - int(cost.work.split()[0].replace(",", ""))
    # Tasks together share their last batches.
    assert 0 <= extra <= 3 * run.recipe.epochs if method == "joint" else extra == 0


@pytest.mark.parametrize(
    ("benchmark", "settings"), [("split-digits-multi-head", DIGITS), ("diabetes", TABLE)]
)
@pytest.mark.parametrize("method", ["radial-vcl", "ewc"])
def test_the_model_is_as_large_as_that_of_the_run(benchmark, settings, method):
    from vcl_radial.models.format import size_of

    run = plan(benchmark, [method], [0], settings)[0]
    (cost,) = costs_of([run])
    track, training = trained(run)
    _, state = track.kept_model(training)
    assert cost.disk == pytest.approx(size_of(state), rel=0.1)


def test_a_longer_run_takes_longer():
    few, many = (plan("diabetes", ["ewc"], [0], {"steps": n})[0] for n in (10, 100_000))
    costs = costs_of([few, many])
    assert costs[1].seconds > 10 * costs[0].seconds > 0


def test_it_prints_recipes_and_costs_within_80_columns_and_trains_nothing(tmp_path, capsys):
    line = ["run", "split-digits-single-head", "--method", "gaussian-vcl", "ewc", "--seeds", "3"]
    line += ["--set", "epochs=2", "hidden=[8]", "--dry-run", "--out", str(tmp_path / "runs")]
    assert main(line) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "split-digits-single-head: 6 runs"
    assert {"gaussian-vcl: 3 runs", "ewc: 3 runs"} <= {*lines}
    assert sum(line.startswith("  one run: ") for line in lines) == 2
    assert lines[-1].startswith("all 6 runs: about ")
    assert max(map(len, lines)) <= 80
    assert not (tmp_path / "runs").exists()


def lines_of(settings):
    runs = plan("split-digits-multi-head", ["ewc"], [0, 1], settings)
    shipped = plan("split-digits-multi-head", ["ewc"], [0, 1])

    class Known(type(track_of(load("benchmark", "split-digits-multi-head")))):
        def costs(self, groups, data_dir, device):
            return [Cost("work", 30.0, 2e9, 5e6, ["a note"]) for _ in groups]

    return [*cost_lines(Known(), runs, shipped, None, "cpu")]


def test_what_differs_from_the_shipped_recipe_stands_beside_it():
    lines = lines_of({"epochs": 3})
    assert "  changed to: epochs=3" in lines
    assert "  shipped as: epochs=20" in lines
    assert not [line for line in lines_of({}) if "shipped" in line or "changed" in line]


def test_totals_count_every_seed_and_a_note_stands_once():
    lines = lines_of({})
    assert lines[-1] == "all 2 runs: about 1.0 minutes on one core; 10.0 MB on disk"
    assert lines.count("a note") == 1


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system has no peak")
def test_the_peak_counts_what_was_freed_until_it_is_reset():
    block = torch.ones(100_000_000)
    reset_peak("cpu")
    with_block = peak("cpu")
    del block
    assert peak("cpu") > with_block - 50_000_000  # the system counts in pages, and late
    reset_peak("cpu")
    assert peak("cpu") < with_block - 200_000_000
