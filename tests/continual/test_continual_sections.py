"""What a report of task sequences shows: tables in full precision, and the same in words."""

import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_runs import ENVIRONMENT, finished, tiny_run

from vcl_radial.reporting import figures, markdown
from vcl_radial.reporting.blocks import Figure, Report, Table
from vcl_radial.reporting.figures.tables import seed_table
from vcl_radial.reporting.gather import gather
from vcl_radial.reporting.scores import scores_table
from vcl_radial.reporting.sections import matrix, matrix_table
from vcl_radial.reporting.write import report_of
from vcl_radial.tracks.continual.tables import COLUMNS

RUNS = {
    ("radial-vcl", 0): [[50.0, 48.0], [98.0, 51.0], [90.0, 97.0]],
    ("radial-vcl", 1): [[50.0, 48.0], [99.0, 53.0], [94.0, 98.0]],
    ("joint", 0): [[50.0, 50.0], None, [99.0, 98.0]],
}


@pytest.fixture
def runs(tmp_path: Path):
    for (method, seed), R in RUNS.items():
        rows = [
            (i, j, "accuracy", value)
            for i, row in enumerate(R)
            for j, value in enumerate(row or [], start=1)
        ]
        tidy = pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False)
        seconds = {"training": 12.0, "evaluation": 1.0}
        environment = ENVIRONMENT | {"seconds": seconds}
        environment |= {"parameters": 1234567} if method == "joint" else {}
        finished(tmp_path, tiny_run(method, seed=seed), tidy, environment)
    gathered, passed_over = gather(tmp_path)
    assert passed_over == []
    return sorted(gathered, key=lambda run: run.method, reverse=True)


@pytest.fixture
def report(runs) -> Report:
    return report_of(runs)


def read(report: Report, name: str) -> pd.DataFrame:
    (text,) = (section.files[name] for section in report.sections if name in section.files)
    return pd.read_csv(io.StringIO(text))


def test_every_table_reads_back_in_full_precision(runs, report):
    results = scores_table(runs)
    pd.testing.assert_frame_equal(read(report, "results.csv"), results)
    summary = figures.summary_table(seed_table(results))
    np.testing.assert_array_equal(
        read(report, "summary.csv")["average_accuracy"], summary["average_accuracy"]
    )
    assert len(read(report, "runs.csv")) == 3
    cells = read(report, "matrices.csv")
    assert len(cells) == 2 * 3 + 1 * 3  # two tasks and their mean, at two moments or one
    assert set(cells["task"]) == {"1", "2", "seen"}


def test_costs_stand_in_the_tables_where_they_are_known(report):
    row = read(report, "summary.csv").set_index("method").loc["joint"]
    assert (row["training_seconds"], row["parameters"]) == (12.0, 1234567.0)
    page = markdown.page(report)
    assert "| 12.0 | 1.0 | 1,234,567 |" in page
    assert page.count("| 12.0 ± 0.0 | 1.0 ± 0.0 | – |") == 1


def test_bytes_carried_have_a_column_where_a_run_knows_them(runs, report):
    assert "carried_bytes" not in read(report, "runs.csv")
    assert "| carried |" not in markdown.page(report)
    counts = {"radial-vcl": 32_192_088, "joint": None}
    knowing = [
        replace(run, environment={**run.environment, "carried_bytes": counts[run.method]})
        for run in runs
    ]
    report = report_of(knowing)
    table = read(report, "runs.csv").set_index("method")["carried_bytes"]
    assert table["radial-vcl"].tolist() == [32_192_088.0] * 2
    assert math.isnan(table["joint"])
    lines = markdown.page(report).splitlines()
    cells = [line.split(" | ")[-1] for line in lines if "| 12.0" in line]
    assert cells == ["32.2 MB |", "– |"]


def test_a_matrix_by_hand(runs):
    summaries = figures.all_over_seeds(scores_table(runs))
    table = matrix_table(summaries).set_index(["method", "after", "task"])
    assert table.loc[("radial-vcl", 2, 1), ["mean", "se"]].tolist() == [92.0, 2.0]
    assert table.loc[("radial-vcl", 2, "seen"), "mean"] == 94.75
    radial, joint = (matrix(summary, ["a", "b"]) for summary in summaries)
    assert [column.heading for column in radial.heads][1:] == ["a", "b", "mean of tasks seen"]
    assert radial.rows == [
        ["task 1", "98.50 ± 0.50", "52.00 ± 1.00", "98.50 ± 0.50"],
        ["task 2", "92.00 ± 2.00", "97.50 ± 0.50", "94.75 ± 1.25"],
    ]
    assert joint.rows[0][0] == "all tasks"


def test_differences_are_against_the_first_method_or_there_is_none(runs, report):
    (against,) = (s for s in report.sections if s.title == "Against radial-vcl")
    sentence = "Fewer than two seeds in common with radial-vcl, so no comparison: joint."
    assert [block.text for block in against.blocks] == [sentence]
    alone = report_of(runs[:2]).sections[1]
    assert [block.text for block in alone.blocks] == ["There is no other method to compare with."]
    twice = report_of([*runs, *(r.__class__(**{**vars(r), "method": "b"}) for r in runs[:2])])
    (table,) = (block for block in twice.sections[1].blocks if isinstance(block, Table))
    assert [cell.text for cell in table.body[0]][:3] == ["b", "2", "0.00 ± 0.00"]
    assert table.body[0][-1].text == "too few seeds: a test takes 6"


def test_pages_show_one_sheet_of_heatmaps_and_files_hold_them_singly(report):
    shown = [b for s in report.sections for b in s.blocks if isinstance(b, Figure)]
    assert {figure.name: figure.on_page for figure in shown} == {
        "final-model": True,
        "accuracy-over-tasks": True,
        "heatmap-radial-vcl": False,
        "heatmap-joint": False,
        "heatmaps": True,
    }


def test_the_details_hold_the_settings_and_where_each_run_lies(report):
    details = markdown.page(report, folded=True)
    assert 'strategy = "naive"' not in details
    assert 'method = "radial-vcl"\n' in details
    assert "\nseed = " not in details
    assert "| split-digits-multi-head/radial-vcl/seed-0-" in details
