import os
from contextlib import closing

import pytest

from vcl_radial.errors import UserError
from vcl_radial.runs import processes
from vcl_radial.runs.supervisor import Supervisor


def carry_out(work, jobs, workers, on_report=lambda job, *report: None):
    """Yield how each job ended, as it ends."""
    waiting = list(jobs)
    with closing(Supervisor(work, workers, on_report)) as supervisor:
        under_way = 0
        while waiting or under_way:
            while waiting and supervisor.room():
                supervisor.submit(waiting.pop(0))
                under_way += 1
            yield supervisor.wait()
            under_way -= 1


def tens(piece, report):
    """Ten times the piece, reported on twice; 7 is refused, 9 kills its process."""
    if piece == 7:
        raise UserError("seven is refused")
    if piece == 9:
        os._exit(3)
    report(1 / 3)
    report(2 / 3)
    return 10 * piece


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
def test_a_worker_that_dies_loses_its_job_alone():
    ended = {end.job: end for end in carry_out(tens, [9, 1, 2, 3], 2)}
    assert {job: end.result for job, end in ended.items()} == {9: None, 1: 10, 2: 20, 3: 30}
    assert ended[9].death == "its process died (exit code 3; out of memory?)"
