"""A method is its own files: without them the rest of the suite is as it was."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DELETED = ("mas", "gvcl", "replay", "bayes-linear")
"""Names of methods, whose files have the same; the last one has lanes and a TOML for tables."""
LANES = "vcl_radial/tracks/regression/lanes"


@pytest.mark.processes
def test_a_method_is_deleted_by_deleting_its_files(tmp_path):
    for folder in ("vcl_radial", "baselines", "benchmarks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for name in DELETED:
        file = f"{name.replace('-', '_')}.py"
        (tmp_path / "vcl_radial" / "methods" / file).unlink()
        (tmp_path / LANES / file).unlink(missing_ok=True)
        (tmp_path / "baselines" / f"{name}.toml").unlink()
        (tmp_path / "baselines" / "regression" / f"{name}.toml").unlink(missing_ok=True)

    def command(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
        line = [sys.executable, "-W", "ignore", "-m", "vcl_radial", *arguments]
        return subprocess.run(
            line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    lines = command("list").stdout.splitlines()
    # Descriptions may name other methods.
    listed = {line.split()[0] for line in lines if line.strip()}
    assert {"ewc", "radial-vcl"} <= listed
    assert not {*DELETED} & listed
    gone = command("run", "split-digits-multi-head", "--method", "gvcl")
    assert gone.returncode == 1
    assert "unknown method 'gvcl'" in gone.stderr
    tiny = ("--set", "epochs=1", "hidden=[8]", "batch_size=32", "eval_samples=2")
    out = ("--out", str(tmp_path / "runs"))
    run = command("run", "split-digits-multi-head", "--method", "ewc", "radial-vcl", *out, *tiny)
    assert run.returncode == 0, run.stderr
    tiny = ("--set", "steps=3", "eval_samples=2")
    run = command("run", "diabetes", "--method", "badam", "gaussian-vcl", *out, *tiny)
    assert run.returncode == 0, run.stderr
