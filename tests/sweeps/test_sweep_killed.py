"""A sweep whose worker, then whose driver, is killed with SIGKILL."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w
from patience import PATIENT, alive, until
from tiny_sweeps import swept, table_of, trials_bytes

from vcl_radial.runs.lock import AlreadyRunning

DRIVER = """
import argparse, sys
from vcl_radial.cli import sweep
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    sweep.add(parser)
    options = parser.parse_args(sys.argv[2:])
    sys.exit(options.command(options))
"""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc"),
]


def test_a_killed_worker_is_replaced_and_a_killed_sweep_goes_on_to_the_same_table(
    tmp_path: Path, user_module
) -> None:
    user_module("patient", PATIENT)
    gate, out, file = tmp_path / "gate", tmp_path / "disturbed", tmp_path / "tiny.toml"
    gate.mkdir()
    # Two trials that workers finish, then two that wait after their first task.
    changes = {
        "kind": "grid",
        "trials": None,
        "fixed__strategy": "patient:Patient",
        "fixed__options": {"gate": str(gate)},
        "search": {"options.patient": [False, True], "learning_rate": [0.1, 0.01]},
    }
    table = table_of(**changes)
    file.write_text(tomli_w.dumps({k: v for k, v in table.items() if v is not None}))
    (tmp_path / "driver.py").write_text(DRIVER)
    paths = [str(tmp_path / "user"), *filter(None, [os.environ.get("PYTHONPATH")])]
    driver = subprocess.Popen(
        [sys.executable, tmp_path / "driver.py", "sweep", file, "--jobs", "2", "--out", out],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL,
    )

    def at_the_gate() -> list[str]:
        return [path.name for path in gate.iterdir()]

    def so_many_wait(count: int) -> bool:
        assert driver.poll() is None
        return len(at_the_gate()) == count

    try:
        until(lambda: so_many_wait(2))
        with pytest.raises(AlreadyRunning):
            swept(out, **changes)
        os.kill(int(at_the_gate()[0]), signal.SIGKILL)
        until(lambda: so_many_wait(3))
    finally:
        driver.kill()
        driver.wait()
    until(lambda: not any(map(alive, at_the_gate())))
    assert trials_bytes(out).count(b",finished,") == 2
    (gate / "open").touch()
    swept(out, **changes)
    swept(tmp_path / "undisturbed", **changes)
    assert trials_bytes(out) == trials_bytes(tmp_path / "undisturbed")
