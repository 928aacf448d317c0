"""Several processes at once. Each starts by importing Avalanche, so these tests are few."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_runs import MULTI_HEAD, tiny_run

from vcl_radial.runs.attempt import RunOutcome
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.runner import perform

pytestmark = pytest.mark.processes


SLEEPER = """
import os, signal, time
from pathlib import Path

deaf = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
(Path(__file__).parent / f"{os.getpid()}.{'deaf' if deaf else 'listening'}").touch()
time.sleep(600)
"""


class Deadly:
    """An executor of one job at a time, in which the first seed's worker always dies."""

    device = None

    def start(self, track, context, on_step):
        self.jobs = []
        self.done = []

    def room(self):
        return 1 - len(self.jobs)

    def submit(self, job):
        self.jobs.append(job)
        self.done += job.runs

    def wait(self):
        (run,) = self.jobs.pop().runs
        return [RunOutcome(run, *(("finished",) if run.seed else ("lost", "its process died")))]

    def close(self):
        self.closed = True


def test_a_run_whose_workers_die_twice_is_lost_alone(tmp_path: Path, capsys):
    runs, executor = [tiny_run(seed=seed) for seed in (0, 1)], Deadly()
    lost, other = perform(runs, RunContext(tmp_path), executor=executor)
    assert (lost.run, lost.status, other.status) == (runs[0], "lost", "finished")
    assert lost.fault == (
        "its process died; run the same command again to resume from its last finished task"
    )
    assert "its process died; its job is retried" in capsys.readouterr().out
    assert executor.done == [runs[0], runs[0], runs[1]]
    assert executor.closed


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(happened, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def test_ending_the_command_ends_its_workers_and_says_how_to_go_on(tmp_path: Path):
    # The server that workers are forked from waits when this stands where it looks for sklearn.
    (tmp_path / "sklearn.py").write_text(SLEEPER)
    command = [sys.executable, "-m", "vcl_radial", "run", MULTI_HEAD, "--method", "naive"]
    command += ["--seeds", "2", "--jobs", "2", "--device", "cpu", "--out", str(tmp_path / "runs")]
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        try:
            # Ctrl-C reaches it as well: only the command itself is to answer it.
            wait_until(lambda: len(list(tmp_path.glob("*.deaf"))) == 1)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors == "vcl-radial: stopped; the same command resumes\n"
    workers = [int(path.stem) for path in tmp_path.glob("*.deaf")]
    wait_until(lambda: not any(map(alive, workers)), seconds=10)


ALONE = """
import sys
from pathlib import Path
from vcl_radial.cli import main
code = main(sys.argv[1:])
heavy = {"avalanche", "sklearn"} & set(sys.modules)
assert not heavy, heavy
sys.exit(code)
"""


@pytest.mark.processes
def test_a_command_imports_no_avalanche_itself_and_leaves_no_process_behind(tmp_path: Path):
    out = tmp_path / "runs"
    command = ["run", MULTI_HEAD, "--method", "naive", "--jobs", "1", "--device", "cpu"]
    command += ["--out", str(out), "--set", "epochs=1", "hidden=[8]", "stream.tasks=2"]
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    # All output is there only when the last process that could write has ended.
    answer = subprocess.run(
        [sys.executable, "-c", ALONE, *command],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert len(list(out.rglob("done"))) == 1
