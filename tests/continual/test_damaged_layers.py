"""`layers.csv` and the scores: what no run writes is passed over, what one can write is not."""

import math
from pathlib import Path

import pandas as pd
import pytest
from tiny_runs import MULTI_HEAD, SINGLE_HEAD, finished, tiny_run

from vcl_radial.reporting.figures import layer_movement
from vcl_radial.reporting.gather import gather
from vcl_radial.reporting.scores import joined
from vcl_radial.reporting.write import write_report
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.continual.tables import COLUMNS, LAYER_COLUMNS


def layers_with(**changed: object) -> str:
    """A made-up layers.csv of two tasks, a value of which is not what it should be."""
    rows = [(task, layer, 3.0, 0.5, 0.1, 0.9, 50.0) for task in (1, 2) for layer in ("0", "head")]
    table = pd.DataFrame(rows, columns=LAYER_COLUMNS).astype(object)
    for column, value in changed.items():
        table.loc[len(table) - 1, column] = value
    return table.to_csv(index=False)


def finished_with(out: Path, layers: str, **settings: object) -> RunFolder:
    folder = finished(out, tiny_run("radial-vcl", **settings))
    names = ("accuracy.csv", "metrics.json", "environment.json")
    folder.finish({n: (folder.path / n).read_text() for n in names} | {"layers.csv": layers})
    return folder


@pytest.mark.parametrize(
    ("layers", "fault"),
    [
        (layers_with(kl="much"), "much"),
        (layers_with(task_trained="two"), "two"),
        (layers_with(task_trained=1.5), "float64"),
        (layers_with(task_trained=None), "NA values"),
        ("task_trained,layer\n1,head\n", "'kl'"),
        ("", "No columns"),
    ],
)
def test_damaged_layers_are_passed_over_by_name(tmp_path: Path, layers, fault):
    finished_with(tmp_path, layers_with(), seed=1)
    damaged = finished_with(tmp_path, layers, seed=0)
    runs, (line,) = gather(tmp_path)
    assert [run.spec.seed for run in runs] == [1]
    assert line.startswith(f"{damaged.path}: is not a run folder of this suite (layers.csv: ")
    assert fault in line
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize("value", [0.0, 3e38, math.inf, None])
def test_what_a_run_can_write_of_a_layer_that_went_far_is_drawn(tmp_path: Path, value):
    finished_with(tmp_path, layers_with(), seed=0)
    columns = ("kl", "moved", "noise", "noise_to_prior")
    finished_with(tmp_path, layers_with(**dict.fromkeys(columns, value)), seed=1)
    runs, passed_over = gather(tmp_path)
    assert (len(runs), passed_over) == (2, [])
    layer_movement(joined(runs, "layers"))


def test_one_file_of_damaged_layers_does_not_take_other_benchmarks_their_page(
    tmp_path: Path, capsys
):
    damaged = finished_with(tmp_path, layers_with(kl="much"))
    finished(tmp_path, tiny_run("naive", benchmark=SINGLE_HEAD))
    write_report(tmp_path, tmp_path / "report")
    assert f"passed over: {damaged.path}: " in capsys.readouterr().err
    assert (tmp_path / "report" / SINGLE_HEAD / "summary.md").exists()
    assert not (tmp_path / "report" / MULTI_HEAD).exists()


def scores_with(metric: str, value: float) -> str:
    rows = [(i, j, name, 50.0) for i in range(3) for j in (1, 2) for name in ("accuracy", metric)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table.loc[len(table) - 1, "value"] = value
    return table.to_csv(index=False)


def test_the_infinite_nll_of_a_label_held_impossible_is_a_score(tmp_path: Path):
    for seed in (0, 1):
        tidy = scores_with("nll", math.inf if seed else 0.5)
        finished(tmp_path, tiny_run(seed=seed), tidy=tidy)
    runs, passed_over = gather(tmp_path)
    assert (len(runs), passed_over) == (2, [])
