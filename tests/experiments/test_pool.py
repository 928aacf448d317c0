import os

import pytest

from vcl_radial.errors import UserError
from vcl_radial.experiments import processes
from vcl_radial.experiments.pool import in_workers


def thirds(piece, tell):
    """Ten times the piece, told of in two words; 7 is refused, 9 kills its process."""
    if piece == 7:
        raise UserError("seven is refused")
    if piece == 9:
        os._exit(3)
    tell(1 / 3)
    tell(2 / 3)
    return 10 * piece


def printed(piece, tell):
    print(piece)
    return piece


def test_a_worker_prints_what_its_output_has_no_code_for(monkeypatch, capfd):
    # The encoding is that of the start of a process, and an older server has its own.
    monkeypatch.setattr(processes._server, "running", False)
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    assert dict(in_workers(printed, ["→", "\udce9"], 2)) == {0: "→", 1: "\udce9"}
    told = capfd.readouterr().out  # two processes may begin one line
    assert r"\u2192" in told
    assert r"\udce9" in told


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_piece_is_done_once_and_told_of(jobs):
    told = []
    found = dict(in_workers(thirds, [3, 4, 5], jobs, lambda *word: told.append(word)))
    assert found == {0: 30, 1: 40, 2: 50}
    assert sorted(told) == [(k, share) for k in range(3) for share in (1 / 3, 2 / 3)]


@pytest.mark.parametrize(
    ("bad", "words"),
    [(7, "seven is refused"), (9, r"exit code 3.*run the same command again.*fewer --jobs")],
)
def test_a_fault_comes_through_and_what_was_done_before_it_too(bad, words):
    found = {}
    with pytest.raises(UserError, match=words):
        found.update(in_workers(thirds, [1, 2, 3, bad], 2))
    assert found.items() <= {0: 10, 1: 20, 2: 30}.items()
    assert found
