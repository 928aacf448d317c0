"""The picture of what methods keep shows the means of their runs, the best at the top."""

import numpy as np
import pandas as pd
import pytest

from reports.__main__ import main
from reports.leaderboard import picture
from vcl_radial.reporting.rows import Rows

RUNS = pd.DataFrame(
    {
        "method": ["naive", "naive", "radial-vcl", "radial-vcl", "ewc"],
        "seed": [0, 1, 0, 1, 0],
        "average_accuracy": [20.0, 40.0, 90.0, 92.0, 55.0],
    }
)


def test_dots_are_at_the_means_and_the_best_method_is_at_the_top():
    methods = ["naive", "radial-vcl", "ewc"]
    figure = picture(Rows(RUNS, "runs.csv"), methods, "average_accuracy", "Kept", "%")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["naive", "EWC", "radial VCL"]
    drawn = [container.lines[0].get_xydata()[0] for container in axes.containers]
    np.testing.assert_allclose(drawn, [(30.0, 0), (55.0, 1), (91.0, 2)])
    ends = axes.containers[0].lines[2][0].get_segments()[0][:, 0]
    assert ends == pytest.approx([20.0, 40.0])  # mean and standard error 30 +- 10


def test_the_command_writes_the_picture_and_refuses_a_method_without_runs(tmp_path, capsys):
    RUNS.to_csv(tmp_path / "runs.csv", index=False)
    command = ["leaderboard", str(tmp_path / "runs.csv"), "--to", str(tmp_path / "kept")]
    assert main([*command[:2], "naive", "ewc", *command[2:]]) == 0
    assert (tmp_path / "kept.png").exists()
    assert main([*command[:2], "lwf", *command[2:]]) == 1
    assert "no row has method = lwf" in capsys.readouterr().err
