import dataclasses

import pandas as pd
import pytest
from failing import fails, refuses
from tiny_runs import SINGLE_HEAD, accuracy_bytes, carried_out, tiny_run

from vcl_radial.data.streams import build_stream, load_dataset
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute_together
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.sections import uncertainty_section
from vcl_radial.tracks.continual.settings import StreamSettings
from vcl_radial.tracks.continual.track import Continual
from vcl_radial.tracks.continual.uncertainty import (
    SET_LIMIT,
    UncertaintyScores,
    inputs_of,
    of_run,
)


def digits(folder):
    """The data of the tasks under another name."""
    return load_dataset("digits")


def small(folder):
    """Images of another size."""
    data = load_dataset("digits")
    parts = {part: getattr(data, part)[..., :4] for part in ("train_x", "test_x")}
    return dataclasses.replace(data, **parts)


def table(run, out):
    return pd.read_csv(RunFolder(out, run).path / "accuracy.csv")


def asked(*names, **settings):
    return tiny_run(*(names or ["radial-vcl"]), **{"stream.uncertainty": True} | settings)


def test_the_limit_of_a_task_is_set_once_and_every_trained_task_is_scored(tmp_path):
    run = asked(eval_samples=3)
    carried_out(run, tmp_path)
    scores = table(run, tmp_path)
    limits = scores[scores["metric"] == SET_LIMIT]
    assert limits["task_trained"].tolist() == limits["task_evaluated"].tolist() == [1, 2, 3, 4, 5]
    for metric, cells in (
        ("coverage", [(i, j) for i in range(1, 6) for j in range(1, i + 1)]),
        ("later_auc_by_entropy", [(i, j) for i in range(1, 6) for j in range(i + 1, 6)]),
        ("later_auc_by_mutual_information", [(i, j) for i in range(1, 6) for j in range(i + 1, 6)]),
    ):
        rows = scores[scores["metric"] == metric]
        assert [*zip(rows["task_trained"], rows["task_evaluated"], strict=True)] == cells
    assert not scores["metric"].str.startswith("ood").any()


def test_the_rows_of_other_scores_do_not_change(tmp_path):
    plain, more = tiny_run("radial-vcl"), asked()
    for run in (plain, more):
        carried_out(run, tmp_path)
    known = table(plain, tmp_path)
    both = table(more, tmp_path)
    both = both[both["metric"].isin(known["metric"].unique())].reset_index(drop=True)
    pd.testing.assert_frame_equal(both, known)


def test_an_interrupted_run_keeps_its_limits(tmp_path):
    run = asked()
    carried_out(run, tmp_path / "whole")
    carried_out(run, tmp_path / "parted", interrupt_at=("task", 3))
    carried_out(run, tmp_path / "parted")
    assert accuracy_bytes(run, tmp_path / "parted") == accuracy_bytes(run, tmp_path / "whole")


def test_lanes_are_scored_too(tmp_path):
    runs = plan(
        "split-digits-multi-head",
        ["radial-vcl"],
        [0, 1],
        {
            "epochs": 1,
            "hidden": [8],
            "eval_samples": 2,
            "stream.uncertainty": True,
        },
    )
    execute_together(Continual(), runs, RunContext(tmp_path / "lanes"), lambda run, step: None)
    carried_out(runs[0], tmp_path / "alone")
    names = ["task_trained", "task_evaluated", "metric"]
    pd.testing.assert_frame_equal(
        table(runs[0], tmp_path / "lanes")[names], table(runs[0], tmp_path / "alone")[names]
    )


def test_points_are_not_told_from_themselves(tmp_path):
    """Digits are told from the same digits by chance; equal uncertainties count half."""
    other = f"{__name__}:digits"
    run = tiny_run("naive", SINGLE_HEAD, **{"stream.tasks": 1, "stream.ood": other})
    carried_out(run, tmp_path)
    scores = table(run, tmp_path)
    (value,) = scores["value"][scores["metric"] == "ood_auc_by_entropy"]
    assert value == pytest.approx(50, abs=1e-9)


def test_an_exact_posterior_is_less_certain_of_classes_before_they_are_learned(tmp_path):
    run = asked("bayes-linear", SINGLE_HEAD)
    carried_out(run, tmp_path)
    scores = table(run, tmp_path)
    assert scores["value"][scores["metric"] == "later_auc_by_entropy"].min() > 90
    at_the_end = scores[scores["task_trained"] == 5]
    assert at_the_end["value"][at_the_end["metric"] == "coverage"].mean() > 90


def test_what_cannot_be_scored_is_refused_before_training():
    stream = build_stream({"kind": "split", "dataset": "digits", "tasks": 5, "validation": 0.02})
    with refuses("stream.uncertainty", "stream.validation"):
        UncertaintyScores(stream, "test")
    whole = build_stream({"kind": "split", "dataset": "digits", "tasks": 5})
    with refuses("stream.uncertainty", "evaluate_on"):
        UncertaintyScores(whole, "validation")
    with fails("stream.ood", "digits"):
        of_run(StreamSettings(dataset="digits", ood="digits"), whole, "test", None)
    with fails("stream.ood", "[8, 4]", "[64]"):
        inputs_of(StreamSettings(dataset="digits", ood=f"{__name__}:small"), whole, None)


def test_a_report_without_such_scores_has_no_section():
    scores = pd.DataFrame({"metric": ["accuracy"], "run": [0], "after": [1], "task": [1]})
    assert uncertainty_section(scores) is None


def test_the_section_averages_over_tasks_and_leaves_out_what_a_method_has_not():
    columns = ["run", "method", "after", "task", "metric", "value"]
    answered = "answered_accuracy_by_entropy"
    rows = [
        *[(0, "ewc", after, 1, "coverage", value) for after, value in ((1, 90.0), (2, 50.0))],
        *[(0, "ewc", 2, task, answered, value) for task, value in ((1, 60.0), (2, 80.0))],
        (0, "ewc", 2, 2, "coverage", 96.0),
        (0, "ewc", 1, 2, "later_auc_by_entropy", 75.0),
        *[(1, "joint", 2, task, "coverage", 99.0) for task in (1, 2)],
    ]
    scores = pd.DataFrame(rows, columns=columns).assign(benchmark="b", seed=0)
    _, covered, judged = uncertainty_section(scores).blocks
    assert [row[:3] for row in covered.rows] == [["ewc", "93.0", "73.0"], ["joint", "", "99.0"]]
    assert judged.rows == [["ewc", "entropy", "70.0", "75.0", ""]]
