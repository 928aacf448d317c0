"""The command that draws what methods keep."""

import pandas as pd

from reports.__main__ import main

RUNS = pd.DataFrame(
    {
        "method": ["naive", "naive", "radial-vcl", "radial-vcl", "ewc"],
        "seed": [0, 1, 0, 1, 0],
        "average_accuracy": [20.0, 40.0, 90.0, 92.0, 55.0],
    }
)


def test_the_command_writes_the_picture_and_refuses_a_method_without_runs(tmp_path, capsys):
    RUNS.to_csv(tmp_path / "runs.csv", index=False)
    command = ["leaderboard", str(tmp_path / "runs.csv"), "--to", str(tmp_path / "kept")]
    assert main([*command[:2], "naive", "ewc", *command[2:]]) == 0
    assert (tmp_path / "kept.png").exists()
    assert main([*command[:2], "lwf", *command[2:]]) == 1
    assert "no row has method = lwf" in capsys.readouterr().err
