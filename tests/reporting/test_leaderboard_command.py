"""The leaderboard over several benchmarks, and the check of its entries."""

import json
import sys

import pandas as pd
import pytest
from failing import fails, refuses
from tiny_runs import ENVIRONMENT, MULTI_HEAD, SINGLE_HEAD, finished, tiny_run

import vcl_radial
from vcl_radial.cli import main
from vcl_radial.cli.arguments import DONE, FAILED
from vcl_radial.config.outside import Untrusted
from vcl_radial.reporting import evidence
from vcl_radial.reporting.entries import check_entry
from vcl_radial.reporting.gather import gather
from vcl_radial.reporting.leaderboard import accuracy_table, origin_of, report_of
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.tables import COLUMNS


def scored(accuracy, tasks=2):
    """The table of a run that ends with this average accuracy on some tasks."""
    rows = [(1, 1, "accuracy", 80.0)]
    rows += [(i, j, "accuracy", accuracy) for i in range(2, tasks + 1) for j in range(1, i + 1)]
    return pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False)


def runs_of(folder, accuracies, benchmark=MULTI_HEAD, tasks=2):
    environment = {**ENVIRONMENT, "tasks": [f"task {number}" for number in range(tasks)]}
    for method, values in accuracies.items():
        for seed, value in enumerate(values):
            run = tiny_run(method, benchmark, seed=seed)
            finished(folder, run, scored(value, tasks), environment)


def by_run(benchmark="b", **methods):
    rows = [
        {"benchmark": benchmark, "method": method, "seed": seed, "average_accuracy": value}
        for method, values in methods.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def cells(table):
    return {row[0].text: row[1:] for row in table.body}


def test_the_best_rank_comes_first_and_every_mean_stands_in_its_column():
    one, other = by_run("one", a=[80, 82], b=[90, 92]), by_run("two", a=[50, 52], b=[60, 62], c=[9])
    table, order = accuracy_table(pd.concat([one, other]))
    assert order == ["b", "a", "c"]
    rows = cells(table)
    assert [cell.key for cell in rows["b"]] == [1.0, 91.0, 61.0]
    assert [cell.key for cell in rows["a"]] == [2.0, 81.0, 51.0]
    assert rows["c"][0].text == "–"  # not in all benchmarks
    assert rows["c"][2].key == 9.0


def test_a_benchmark_of_one_method_ranks_nothing():
    common = by_run("common", a=[80, 82], b=[90, 92])
    rows = cells(accuracy_table(pd.concat([common, by_run("of a", a=[50, 52])]))[0])
    assert [rows["b"][0].key, rows["a"][0].key] == [1.0, 2.0]
    assert rows["a"][2].key == 51.0
    alone, _ = accuracy_table(by_run(a=[80, 82]))
    assert cells(alone)["a"][0].text == "–"


def notices_of(folder):
    (first, *_) = report_of(gather(folder)[0]).sections
    return [b.text for b in first.blocks if getattr(b, "style", "") == "notice"]


def test_methods_with_fewer_seeds_are_named_and_no_shared_seeds_leave_no_interval(tmp_path):
    runs_of(tmp_path, {"naive": [60.0, 61.0], "l2": [70.0]})
    (line,) = (line for line in notices_of(tmp_path) if "seeds" in line)
    assert "l2 has 1" in line
    assert "naive has" not in line
    table, _ = accuracy_table(by_run(a=[80], b=[90]))
    assert [row[0].text for row in cells(table).values()] == ["1.0", "2.0"]
    runs_of(tmp_path, {"l2": [70.0, 71.0]})
    assert not any("seeds" in line for line in notices_of(tmp_path))


def test_files_that_the_command_has_not_written_stay(tmp_path, capsys):
    runs_of(tmp_path / "runs", {"naive": [60.0, 61.0], "l2": [70.0, 71.0]})
    main(["report", str(tmp_path / "runs"), "--to", str(tmp_path / "report")])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "runs.csv").write_text("mine")
    folders = [tmp_path / "mine", tmp_path / "report", tmp_path / "report" / MULTI_HEAD]
    for to in folders:
        before = {file: file.read_bytes() for file in to.rglob("*.*")}
        assert main(["leaderboard", str(tmp_path / "runs"), "--to", str(to)]) == FAILED
        assert {file: file.read_bytes() for file in to.rglob("*.*")} == before
        assert str(to) in capsys.readouterr().err
    for _ in range(2):  # its own files it writes again
        to = tmp_path / "to"
        assert main(["leaderboard", str(tmp_path / "runs"), "--to", str(to)]) == DONE


def test_runs_that_are_left_out_are_counted(tmp_path, capsys):
    runs_of(tmp_path, {"naive": [60.0, 61.0]})
    finished(tmp_path, tiny_run(evaluate_on="validation"))
    assert main(["leaderboard", str(tmp_path), "--to", str(tmp_path / "to")]) == DONE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("passed over: 1 ")


def test_holms_correction_over_a_column_decides_the_marks():
    low, high = [10, 11, 12, 10, 11, 12], [20, 21, 22, 20, 21, 22.5]
    (alone, _), (three, _) = (
        accuracy_table(by_run(best=high, worse=low, **more))
        for more in ({}, {"third": [value - 1 for value in low]})
    )
    assert [cells(alone)[m][1].best for m in ("best", "worse")] == [True, False]  # p = 2 / 2^6
    assert cells(three)["worse"][1].best  # twice that is above 0.05
    few, _ = accuracy_table(by_run(best=high[:5], worse=low[:5]))
    assert not any(row[1].best for row in cells(few).values())


def test_a_method_that_learns_all_tasks_at_once_is_ranked_with_the_others(tmp_path):
    runs_of(tmp_path, {"naive": [60.0, 61.0], "l2": [70.0, 71.0]})
    joint = pd.DataFrame([(2, 1, "accuracy", 99.0), (2, 2, "accuracy", 99.0)], columns=COLUMNS)
    for seed in range(2):
        finished(tmp_path, tiny_run("joint", seed=seed), joint.to_csv(index=False))
    report = report_of(gather(tmp_path)[0])
    assert [row[0].text for row in report.sections[0].blocks[0].body] == ["joint", "l2", "naive"]
    (missing,) = (b.text for b in report.sections[0].blocks if getattr(b, "style", "") == "notice")
    assert "frozen-body" in missing
    assert "joint" not in missing


def test_the_command_writes_every_format_from_runs_and_from_evidence(tmp_path, capsys):
    runs_of(tmp_path / "one", {"naive": [60.0, 61.0], "l2": [70.0, 71.0]})
    runs_of(tmp_path / "two", {"naive": [20.0, 21.0], "l2": [30.0, 31.0]}, SINGLE_HEAD)
    main(["report", str(tmp_path / "two"), "--evidence", "--to", str(tmp_path / "entry")])
    command = ["leaderboard", str(tmp_path / "one"), str(tmp_path / "entry")]
    assert main([*command, "--to", str(tmp_path / "to")]) == DONE
    written = pd.read_csv(tmp_path / "to" / "leaderboard.csv")
    assert set(written["benchmark"]) == {MULTI_HEAD, SINGLE_HEAD}
    of_l2 = written[(written["method"] == "l2") & (written["benchmark"] == SINGLE_HEAD)]
    assert of_l2["average_accuracy"].item() == 30.5
    for name in ("leaderboard.tex", "leaderboard.png", "runs.csv", "summary.md", "index.html"):
        assert (tmp_path / "to" / name).stat().st_size > 0
    assert "1.0 (1.0 to 1.0)" in capsys.readouterr().out


def test_runs_scored_on_validation_data_are_not_compared(tmp_path):
    finished(tmp_path, tiny_run(evaluate_on="validation"))
    assert main(["leaderboard", str(tmp_path), "--to", str(tmp_path / "to")]) == FAILED


def test_shipped_tuned_and_own_settings_are_told_apart(tmp_path):
    benchmark = "split-fashion-multi-head"
    shipped, tuned = (plan(benchmark, ["ewc"], [0], tuned=tuned)[0] for tuned in (False, True))
    (own,) = plan(benchmark, ["ewc"], [0], {"epochs": 3})
    for run in (shipped, tuned, own):
        finished(tmp_path, run)
    origins = {
        run.digest(): name for run, name in ((shipped, "shipped"), (tuned, "tuned"), (own, "own"))
    }
    runs, _ = gather(tmp_path)
    assert len(runs) == len(origins) == 3
    for run in runs:
        assert origin_of(run) == origins[run.path.name.rpartition("-")[2]]


@pytest.fixture
def entry(tmp_path):
    """A function that writes runs as an entry, and returns its folder."""

    def write(tasks=5, **accuracies):
        runs_of(tmp_path / "runs", accuracies, tasks=tasks)
        evidence.write(gather(tmp_path / "runs")[0], tmp_path / "entry" / MULTI_HEAD, {})
        return tmp_path / "entry"

    return write


def test_an_entry_without_a_fault_is_listed(entry):
    lines, faults = check_entry(entry(naive=[60.0, 61.0], l2=[70.0, 71.0]))
    assert faults == []
    assert len(lines) == 2
    assert main(["leaderboard", "--check", str(entry(naive=[60.0]))]) == DONE


LINK = {"parent": "a", "task": "b", "checksum": "c", "folder": "d", "data": "e"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda spec: spec["stream"].update(tasks=2), "stream.tasks"),
        (lambda spec: spec["stream"].update(validation=0.3), "stream.validation"),
        (lambda spec: spec.update(benchmark="split-nothing"), "split-nothing"),
        (lambda spec: spec.update(benchmark="diabetes"), "diabetes"),
        (lambda spec: spec.update(updates=[LINK]), "update"),
        (lambda spec: spec.update(seed=0), "other scores"),
        (lambda spec: spec.update(evaluate_on="validation"), "validation"),
        (lambda spec: spec["recipe"].update(epochs=7), "different settings"),
    ],
)
def test_a_changed_benchmark_and_mixed_settings_are_faults(entry, change, named):
    folder = entry(naive=[60.0, 61.0])
    file = folder / MULTI_HEAD / "evidence.json"
    listed = json.loads(file.read_text())
    change(listed["runs"][1]["spec"])
    file.write_text(json.dumps(listed))
    _, faults = check_entry(folder)
    assert any(named in line for line in faults)
    assert main(["leaderboard", "--check", str(folder)]) == FAILED


def test_an_entry_without_all_tasks_of_the_benchmark_has_a_fault(entry):
    _, (fault,) = check_entry(entry(tasks=2, naive=[60.0]))
    assert "2 tasks" in fault


def test_the_order_of_the_classes_is_free(entry):
    folder = entry(naive=[60.0])
    file = folder / MULTI_HEAD / "evidence.json"
    listed = json.loads(file.read_text())
    listed["runs"][0]["spec"]["stream"]["class_order"] = "seed"
    file.write_text(json.dumps(listed))
    assert check_entry(folder)[1] == []


@pytest.mark.parametrize("value", [100.5, -1.0, float("inf")])
def test_impossible_scores_are_faults(entry, value):
    _, (fault,) = check_entry(entry(naive=[value]))
    assert str(value) in fault


def test_a_damaged_table_is_a_fault_and_a_folder_without_evidence_an_error(entry, tmp_path):
    folder = entry(naive=[60.0])
    table = folder / MULTI_HEAD / "evidence-accuracy.csv.xz"
    table.write_bytes(table.read_bytes()[:-8])
    with refuses(table.name):
        check_entry(folder)
    with fails(tmp_path / "runs"):
        check_entry(tmp_path / "runs")


def test_a_repeated_run_exposes_made_up_scores(entry):
    _, (fault,) = check_entry(entry(naive=[12.0]), repeat=True)
    assert MULTI_HEAD in fault


def test_a_repeated_run_agrees_with_itself(tmp_path):
    vcl_radial.run(
        MULTI_HEAD,
        "naive",
        settings={"epochs": 1, "hidden": [8]},
        out=tmp_path / "runs",
        jobs=1,
        model=False,
    )
    evidence.write(gather(tmp_path / "runs")[0], tmp_path / "entry", {})
    assert check_entry(tmp_path / "entry", repeat=True)[1] == []


def test_an_entry_runs_no_code_without_consent(entry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = entry(naive=[60.0])
    (folder / "hostile_entry.py").write_text("raise SystemExit('imported')\n")
    file = folder / MULTI_HEAD / "evidence.json"
    listed = json.loads(file.read_text())
    listed["runs"][0]["spec"]["recipe"]["strategy"] = "hostile_entry:Method"
    listed["runs"][0]["spec"]["code"] = "0" * 16
    file.write_text(json.dumps(listed))
    assert check_entry(folder)[1] == []
    with refuses("hostile_entry", kind=Untrusted):
        check_entry(folder, repeat=True)
    assert "hostile_entry" not in sys.modules
