import errno
import json
import math
import os
from pathlib import Path

import pandas as pd
import pytest
from tiny_runs import ENVIRONMENT, SINGLE_HEAD, finished, tiny_run

import vcl_radial as vr
from vcl_radial.errors import UserError
from vcl_radial.reporting import scores
from vcl_radial.reporting.gather import gather, notices
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.continual.tables import COLUMNS


def test_runs_are_gathered_by_benchmark_method_and_seed(tmp_path: Path):
    for method in ("naive", "joint"):
        for seed in (1, 0):
            finished(tmp_path, tiny_run(method, seed=seed))
    runs, passed_over = gather(tmp_path)
    names = [(run.method, run.spec.seed) for run in runs]
    assert names == [("joint", 0), ("joint", 1), ("naive", 0), ("naive", 1)]
    assert passed_over == []
    table = scores.scores_table(runs)
    assert tuple(table.columns) == scores.COLUMNS
    assert len(table) == 4 * 6
    assert not table.duplicated(["run", "after", "task", "metric"]).any()
    assert table["part"].unique().tolist() == ["test"]


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
        "radial-vcl (epochs=1)",
        "radial-vcl (epochs=2)",
        "radial-vcl (epochs=2, initial_noise=0.1)",
    ]


@pytest.mark.parametrize(
    ("first", "second", "labels"),
    [
        ({"x": True}, {"x": "True"}, ["x='True'", "x=True"]),
        ({"x": 1}, {"x": "1"}, ["x='1'", "x=1"]),
        ({"x": [1]}, {"x": "[1]"}, ["x='[1]'", "x=[1]"]),
        (
            {"x": "a, options.y=b", "y": "c"},
            {"x": "a", "y": "b, options.y=c"},
            ["x='a', options.y='b, options.y=c'", "x='a, options.y=b', options.y='c'"],
        ),
        ({"x": True}, {"x": "no"}, ["x=True", "x=no"]),
    ],
)
def test_other_settings_get_other_names_though_they_look_alike(
    first, second, labels, tmp_path: Path
):
    for options in (first, second):
        finished(tmp_path, tiny_run(**{f"options.{key}": v for key, v in options.items()}))
    runs, _ = gather(tmp_path)
    assert sorted(run.method for run in runs) == [f"naive (options.{label})" for label in labels]


def test_runs_on_other_tasks_or_other_data_are_another_benchmark(tmp_path: Path):
    finished(tmp_path, tiny_run())
    finished(tmp_path, tiny_run(**{"stream.tasks": 2}))
    finished(tmp_path, tiny_run("joint", evaluate_on="validation"))
    finished(tmp_path, tiny_run(benchmark=SINGLE_HEAD, epochs=2))
    runs, _ = gather(tmp_path)
    assert [(run.benchmark, run.method) for run in runs] == [
        ("split-digits-multi-head (tasks=2)", "naive"),
        ("split-digits-multi-head (tasks=5)", "naive"),
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
    (tmp_path / "somebody" / "seed-file").write_text("not a folder")
    runs, passed_over = gather(tmp_path)
    assert [run.spec.seed for run in runs] == [0]
    expected = {
        unfinished.path: "not finished; the command that started it resumes it",
        altered.path: ": accuracy.csv was altered after the run",
        gaps.path: "does not hold the 2 tasks of environment.json",
        columns.path: "(accuracy.csv: has no column 'task_trained'",
        environment.path: "(environment.json: the key 'processor' is missing)",
        no_table.path: "is not a run folder of this suite (environment.json: ",
        no_spec.path: "is not a run folder of this suite (it has no spec.toml)",
        foreign: "is not a run folder of this suite (it has no spec.toml)",
    }
    assert len(passed_over) == len(expected)
    for path, words in expected.items():
        (line,) = (line for line in passed_over if line.startswith(f"{path}: "))
        assert words in line
        assert len(line.splitlines()) == 1


def test_folders_that_may_not_be_entered_are_passed_over_by_name(tmp_path: Path, monkeypatch):
    finished(tmp_path, tiny_run(seed=0))
    closed = {
        finished(tmp_path, tiny_run(seed=1)).path,
        finished(tmp_path, tiny_run("joint")).path.parent,
    }
    scandir = os.scandir

    def guarded(path):
        if Path(path) in closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    runs, passed_over = gather(tmp_path)
    assert [(run.method, run.spec.seed) for run in runs] == [("naive", 0)]
    reason = "permission denied; make it readable, and give the command again"
    assert set(passed_over) == {f"{path}: {reason}" for path in closed}


def test_a_run_with_a_file_that_may_not_be_read_is_passed_over(tmp_path: Path, monkeypatch):
    finished(tmp_path, tiny_run(seed=0))
    closed = finished(tmp_path, tiny_run(seed=1)).path / "done"
    opened = os.open

    def guarded(path, *args, **settings):
        if path == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *args, **settings)

    monkeypatch.setattr(os, "open", guarded)
    runs, passed_over = gather(tmp_path)
    assert [run.spec.seed for run in runs] == [0]
    assert passed_over == [
        f"{closed}: permission denied; make it readable, and give the command again"
    ]


def tidy_with(**changed: object) -> str:
    """Made-up scores on two tasks, a value of which is not what it should be."""
    rows = [(i, j, "accuracy", 50.0) for i in range(3) for j in (1, 2)]
    table = pd.DataFrame(rows, columns=COLUMNS).astype(object)
    for column, value in changed.items():
        table.loc[len(table) - 1, column] = value
    return table.to_csv(index=False)


@pytest.mark.parametrize(
    ("tidy", "words"),
    [
        (tidy_with(value="high"), "high"),
        (tidy_with(task_evaluated=10**12), "does not hold the 2 tasks"),  # and no memory for it
        (tidy_with(task_evaluated="two"), "two"),
        (tidy_with(task_trained=1), "occurs twice"),
        (tidy_with(task_trained=77), "a task_trained that is not from 0 to 2"),
        (tidy_with(task_trained=1.5), "float64"),
        ("", "No columns"),
        ("\0\0", "accuracy.csv: "),
    ],
)
def test_damaged_scores_are_passed_over_by_name(tmp_path: Path, tidy, words):
    finished(tmp_path, tiny_run(seed=1))
    damaged = finished(tmp_path, tiny_run(seed=0), tidy=tidy)
    runs, (line,) = gather(tmp_path)
    assert [run.spec.seed for run in runs] == [1]
    assert line.startswith(f"{damaged.path}: is not a run folder of this suite (accuracy.csv: ")
    assert words in line
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tasks": "0, 1"}, "'tasks'"),
        ({"tasks": ["one"]}, "does not hold the 1 tasks of environment.json"),
        ({"seconds": {"training": math.inf}}, "'seconds.training'"),
        ({"parameters": -1}, "'parameters'"),
        ({"packages": [1]}, "'packages'"),
    ],
)
def test_a_damaged_environment_is_passed_over_by_name(tmp_path: Path, changed, words):
    finished(tmp_path, tiny_run(seed=1))
    finished(tmp_path, tiny_run(seed=0), environment=ENVIRONMENT | changed)
    _, (line,) = gather(tmp_path)
    assert words in line


def test_json_that_nests_without_end_is_passed_over(tmp_path: Path):
    finished(tmp_path, tiny_run(seed=1))
    folder = finished(tmp_path, tiny_run(seed=0))
    deep = "[" * 100_000
    files = {name: (folder.path / name).read_text() for name in ("accuracy.csv", "metrics.json")}
    folder.finish(files | {"environment.json": deep})
    _, (line,) = gather(tmp_path)
    assert "environment.json" in line


def test_names_are_on_one_line_and_hide_nothing(tmp_path: Path):
    name = "a\nb\x1b[31m\u202e\x00 日本"
    folder = finished(tmp_path, tiny_run())
    spec = (folder.path / "spec.toml").read_text()
    (folder.path / "spec.toml").write_text(
        spec.replace('method = "naive"', f"method = {json.dumps(name)}")
    )
    files = {n: (folder.path / n).read_text() for n in ("accuracy.csv", "environment.json")}
    folder.finish(files | {"metrics.json": "{}"})
    runs, _ = gather(tmp_path)
    assert runs[0].method == r"a\nb\x1b[31m\u202e\x00 日本"


def test_costs_are_nan_where_an_older_version_did_not_write_them_down(tmp_path: Path):
    seconds = {"training": 3.0, "evaluation": 1}
    environment = ENVIRONMENT | {"parameters": 17, "seconds": seconds}
    finished(tmp_path, tiny_run(seed=0), environment=environment)
    finished(tmp_path, tiny_run(seed=1), environment=ENVIRONMENT | {"seconds": {}})
    costs = scores.runs_table(gather(tmp_path)[0])[
        ["seed", "training_seconds", "evaluation_seconds", "parameters"]
    ]
    assert costs.iloc[0].tolist() == [0, 3.0, 1.0, 17.0]
    assert costs.iloc[1, 1:].isna().all()


def test_a_reader_is_told_of_settings_shown_apart_and_of_commits_put_together(tmp_path: Path):
    for epochs in (1, 2):
        finished(tmp_path, tiny_run("radial-vcl", epochs=epochs))
    for seed in (0, 1):
        environment = ENVIRONMENT | {"commit": f"commit-{seed}"}
        finished(tmp_path, tiny_run("naive", seed=seed), environment=environment)
    finished(tmp_path, tiny_run("joint"))
    apart, together = notices(gather(tmp_path)[0])
    assert "radial-vcl have 2 different settings" in apart
    assert together == "runs of several commits are put together: naive"


def test_a_reader_is_told_of_versions_put_together_that_no_commit_tells(tmp_path: Path):
    old, new = ({"torch": "2.5", "vcl-radial": version} for version in ("0.1", "0.2"))
    newer_torch = old | {"torch": "2.6"}
    for method, commits, packages in (
        ("naive", (None, None), (old, new)),
        ("joint", (None, None), (old, old)),
        ("radial-vcl", (None, "abc"), (old, new)),
        ("gaussian-vcl", ("abc", "abc"), (old, newer_torch)),
    ):
        for seed in (0, 1):
            environment = ENVIRONMENT | {"commit": commits[seed], "packages": packages[seed]}
            finished(tmp_path, tiny_run(method, seed=seed), environment=environment)
    assert notices(gather(tmp_path)[0]) == [
        "runs of several commits are put together: radial-vcl",
        "runs of several versions of vcl-radial are put together: naive, radial-vcl",
        "runs of several versions of torch are put together: gaussian-vcl",
    ]


@pytest.mark.parametrize("with_spec", [True, False])
def test_a_run_that_failed_is_told_of_with_its_reason(tmp_path: Path, with_spec):
    finished(tmp_path, tiny_run(seed=0))
    failed = RunFolder(tmp_path, tiny_run(seed=1))
    failed.start()
    if not with_spec:
        (failed.path / "spec.toml").unlink()
    (failed.path / "failed.txt").write_text("ValueError: no\n\tsuch \x1b[31mthing\n")
    _, (line,) = gather(tmp_path)
    assert line == rf"{failed.path}: failed: ValueError: no such \x1b[31mthing"


def test_a_run_that_was_finished_after_it_had_failed_is_shown(tmp_path: Path):
    folder = finished(tmp_path, tiny_run())
    (folder.path / "failed.txt").write_text("ValueError: no\n")
    runs, passed_over = gather(tmp_path)
    assert (len(runs), passed_over) == (1, [])


def test_the_folder_of_a_run_itself_is_told_what_to_give(tmp_path: Path, monkeypatch):
    folder = finished(tmp_path, tiny_run()).path
    benchmark = tmp_path / folder.relative_to(tmp_path).parts[0]
    words = f"is the folder of one run; give {benchmark}, its benchmark's"
    with pytest.raises(UserError) as fault:
        gather(folder)
    assert str(fault.value) == f"{folder}: {words}"
    monkeypatch.chdir(folder)
    with pytest.raises(UserError) as fault:
        gather(Path())
    assert str(fault.value) == f".: {words}"
    assert len(gather(benchmark)[0]) == 1


def test_a_copy_of_a_run_is_not_counted_twice(tmp_path: Path):
    folder = finished(tmp_path, tiny_run())
    copy = folder.path.parent / "seed-0-copy"
    copy.mkdir()
    for path in folder.path.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    runs, passed_over = gather(tmp_path)
    assert len(runs) == 1
    (line,) = passed_over
    assert line == f"{copy}: is the same run as {runs[0].path}"
    with pytest.warns(UserWarning, match="is the same run as"):
        assert len(vr.load_results(tmp_path).runs) == 1


def test_a_folder_without_finished_runs_is_named(tmp_path: Path):
    with pytest.raises(UserError, match="nowhere: "):
        gather(tmp_path / "nowhere")
    RunFolder(tmp_path, tiny_run()).start()
    RunFolder(tmp_path, tiny_run(seed=1)).start()
    words = f"{tmp_path}: holds no finished run; give a folder .*not finished; .*, and 1 more"
    with pytest.raises(UserError, match=words):
        gather(tmp_path)
