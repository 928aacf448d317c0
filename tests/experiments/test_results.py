from pathlib import Path

import pytest
from tiny_runs import SINGLE_HEAD, finished, tiny_run

from vcl_radial.errors import UserError
from vcl_radial.experiments.results import COLUMNS, gather, results_table
from vcl_radial.experiments.run_folder import RunFolder


def test_runs_are_gathered_by_benchmark_method_and_seed(tmp_path: Path):
    for method in ("naive", "joint"):
        for seed in (1, 0):
            finished(tmp_path, tiny_run(method, seed=seed))
    runs, passed_over = gather(tmp_path)
    names = [(run.method, run.spec["seed"]) for run in runs]
    assert names == [("joint", 0), ("joint", 1), ("naive", 0), ("naive", 1)]
    assert passed_over == []
    table = results_table(runs)
    assert list(table.columns) == ["benchmark", "method", "seed", *COLUMNS]
    assert len(table) == 4 * 6
    assert not table.duplicated(["benchmark", "method", "seed", *COLUMNS[:3]]).any()


def test_a_method_with_several_settings_is_named_after_what_differs_and_nothing_else(
    tmp_path: Path,
):
    for settings in ({}, {"epochs": 2}, {"epochs": 2, "initial_noise": 0.1}):
        for seed in (0, 1):
            finished(tmp_path, tiny_run("radial-vcl", seed=seed, **settings))
    finished(tmp_path, tiny_run("naive", epochs=3))
    runs, _ = gather(tmp_path)
    assert sorted({run.method for run in runs}) == [
        "naive",
        "radial-vcl (epochs=1, initial_noise=None)",
        "radial-vcl (epochs=2, initial_noise=0.1)",
        "radial-vcl (epochs=2, initial_noise=None)",
    ]


def test_runs_on_other_tasks_or_other_data_are_another_benchmark(tmp_path: Path):
    finished(tmp_path, tiny_run())
    finished(tmp_path, tiny_run(**{"stream.tasks": 2}))
    finished(tmp_path, tiny_run("joint", evaluate_on="validation"))
    finished(tmp_path, tiny_run(benchmark=SINGLE_HEAD, epochs=2))
    runs, _ = gather(tmp_path)
    assert [(run.benchmark, run.method) for run in runs] == [
        ("split-digits-multi-head (stream.tasks=2)", "naive"),
        ("split-digits-multi-head (stream.tasks=5)", "naive"),
        ("split-digits-multi-head (validation data)", "joint"),
        ("split-digits-single-head", "naive"),
    ]


def test_what_is_not_a_finished_run_is_passed_over_by_name(tmp_path: Path):
    finished(tmp_path, tiny_run(seed=0))
    unfinished = RunFolder(tmp_path, tiny_run(seed=1))
    unfinished.start()
    altered = finished(tmp_path, tiny_run(seed=2))
    (altered.path / "accuracy.csv").write_text("task_trained\n")
    gaps = finished(tmp_path, tiny_run(seed=3), tidy=",".join(COLUMNS) + "\n2,2,accuracy,9\n")
    columns = finished(tmp_path, tiny_run(seed=4), tidy="a,b\n1,2\n")
    environment = finished(tmp_path, tiny_run(seed=5), environment={"device": "cpu"})
    no_table = finished(tmp_path, tiny_run(seed=6), environment=[1])
    no_spec = finished(tmp_path, tiny_run(seed=7))
    (no_spec.path / "spec.toml").unlink()
    foreign = tmp_path / "somebody" / "seed-data"
    foreign.mkdir(parents=True)
    runs, passed_over = gather(tmp_path)
    assert [run.spec["seed"] for run in runs] == [0]
    expected = {
        unfinished.path: "not finished",
        altered.path: "was altered after the run",
        gaps.path: "is not a run folder of this suite",
        columns.path: "columns a, b",
        environment.path: "'processor'",
        no_table.path: "is not a run folder of this suite",
        no_spec.path: "is missing",
        foreign: "not finished",
    }
    assert len(passed_over) == len(expected)
    for path, words in expected.items():
        (line,) = (line for line in passed_over if str(path) in line)
        assert words in line
        assert len(line.splitlines()) == 1


def test_a_copy_of_a_run_is_not_counted_twice(tmp_path: Path):
    folder = finished(tmp_path, tiny_run())
    copy = folder.path.parent / "seed-0-copy"
    copy.mkdir()
    for path in folder.path.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    runs, passed_over = gather(tmp_path)
    assert len(runs) == 1
    (line,) = passed_over
    assert f"is the same run as {runs[0].path}" in line


def test_a_folder_without_finished_runs_is_named(tmp_path: Path):
    with pytest.raises(UserError, match="nowhere: there is no such folder"):
        gather(tmp_path / "nowhere")
    RunFolder(tmp_path, tiny_run()).start()
    with pytest.raises(UserError, match=f"{tmp_path}: holds no finished run; give a folder"):
        gather(tmp_path)
