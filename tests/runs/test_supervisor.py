import os
import signal

import pytest

from vcl_radial.errors import UserError
from vcl_radial.runs import processes
from vcl_radial.runs.supervisor import carry_out


def tens(piece, report):
    """Ten times the piece, reported on twice; 7 is refused, 9 kills its process."""
    if piece == 7:
        raise UserError("seven is refused")
    if piece == 9:
        os._exit(3)
    report(1 / 3)
    report(2 / 3)
    return 10 * piece


def once_fatal(path, report):
    """Kills its process if the file is there, and takes it away."""
    if path.exists():
        path.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def printed(piece, report):
    print(piece)
    return piece


def results(ended):
    return {end.job: end.result for end in ended}


@pytest.mark.processes
def test_a_worker_prints_what_its_output_has_no_code_for(monkeypatch, capfd):
    # The encoding is that of the start of a process, and an older server has its own.
    monkeypatch.setattr(processes._server, "running", False)
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    assert results(carry_out(printed, ["→", "\udce9"], 2)) == {"→": "→", "\udce9": "\udce9"}
    output = capfd.readouterr().out  # two processes may begin one line
    assert r"\u2192" in output
    assert r"\udce9" in output


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_every_job_is_done_once_and_reported_on(workers):
    reports = []
    ended = carry_out(tens, [3, 4, 5], workers, lambda *report: reports.append(report))
    assert results(ended) == {3: 30, 4: 40, 5: 50}
    assert sorted(reports) == [(job, share) for job in (3, 4, 5) for share in (1 / 3, 2 / 3)]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_an_exception_is_raised_and_what_ended_before_it_is_there(workers):
    done = {}
    ended = ((end.job, end.result) for end in carry_out(tens, [1, 2, 3, 7], workers))
    with pytest.raises(UserError, match="seven is refused"):
        done.update(ended)
    assert done
    assert done.items() <= {1: 10, 2: 20, 3: 30}.items()


@pytest.mark.processes
def test_a_job_whose_worker_dies_is_done_once_more(tmp_path, capsys):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    paths[0].touch()
    assert results(carry_out(once_fatal, paths, 2)) == {path: path.name for path in paths}
    assert "its process died (exit code -9; out of memory?); its job is done once more" in (
        capsys.readouterr().out
    )


@pytest.mark.processes
def test_a_job_whose_workers_die_twice_is_lost_alone():
    ended = {end.job: end for end in carry_out(tens, [9, 1, 2, 3], 2)}
    assert {job: end.outcome for job, end in ended.items()} == {9: None, 1: 10, 2: 20, 3: 30}
    with pytest.raises(UserError, match=r"exit code 3.*run the same command again.*fewer --jobs"):
        _ = ended[9].result
