"""Two processes that share every batch do what one does, each with weights of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import retinopathy_helpers
import retinopathy_worker
import torch
from failing import refuses

from vcl_radial.runs.folder import finished_fault
from vcl_radial.runs.peers import ALONE, Peers, joined

HERE = Path(__file__).parent


def in_two_processes(out, cache):
    # torchrun, as the README has it, which finds a port that nobody else can take meanwhile.
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    paths = os.pathsep.join([str(HERE.parents[1]), str(HERE)])
    return subprocess.run(
        [*torchrun, "--nproc-per-node", "2", str(HERE / "retinopathy_worker.py"), str(out)],
        env={**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(cache)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.processes
def test_two_processes_learn_what_one_learns(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    retinopathy_worker.work(ALONE, tmp_path / "one")
    done = in_two_processes(tmp_path / "two", tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    one = torch.load(tmp_path / "one" / "rank-0.pt", weights_only=True)
    first, second = (
        torch.load(tmp_path / "two" / f"rank-{rank}.pt", weights_only=True) for rank in (0, 1)
    )
    for name, value in one["weights"].items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(first["weights"][name], value, rtol=1e-4, atol=1e-5)
            assert torch.equal(first["weights"][name], second["weights"][name])
    for mine, expected in zip(first["history"], one["history"], strict=True):
        for key in ("loss", "nll", "kl", "validation_auc"):
            assert mine[key] == pytest.approx(expected[key], rel=1e-4)
    # The noise is of each process's own; the first one's is that of a process alone.
    assert first["seeds"] == one["seeds"]
    assert not set(first["seeds"]) & set(second["seeds"])
    (folder,) = (tmp_path / "two").glob("b/m/seed-0-*")
    assert finished_fault(folder, ("spec.toml", "weights.pt")) is None
    assert json.loads((folder / "environment.json").read_text())["processes"] == 2


def test_a_process_alone_joins_nobody(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with joined("cpu") as (processes, device):
        assert (processes, device) == (ALONE, "cpu")
    assert processes.from_first(lambda: 3.5, torch.device("cpu")) == 3.5


def test_weights_that_are_held_have_no_gradient_to_average():
    held, free = (torch.nn.Parameter(torch.zeros(2), requires_grad=g) for g in (False, True))
    Peers(0, 2).average_gradients([held, free])
    assert not held._post_accumulate_grad_hooks
    assert free._post_accumulate_grad_hooks


def test_a_batch_that_cannot_be_shared_equally_is_refused(prepared):
    with refuses("batch_size = 8", "3 processes"):
        retinopathy_helpers.Training(
            retinopathy_helpers.recipe(), prepared, seed=0, peers=Peers(0, 3)
        )
