"""One of two processes that train together; run by test_retinopathy_processes."""

import sys
from pathlib import Path

import retinopathy_helpers
import torch
from retinopathy_helpers import Training, execute

from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.peers import ALONE, joined
from vcl_radial.tracks.retinopathy.settings import DataSettings, Run

QUIET_NOISE = {"posterior": "gaussian", "truncation": 1e-6, "kl_weight": 20.0}


def work(processes, out):
    """Two epochs of one network; then a short run with all of its files."""
    site = retinopathy_helpers.prepared()
    keys = {**QUIET_NOISE, "optimizer": "sgd", "learning_rate": 1e-2, "augment": False}
    start = {"strategy": "ml_init_vcl", "options": {"ml_epochs": 1}}
    recipe = retinopathy_helpers.recipe(**keys, **start, train_samples=2, epochs=2, select="last")
    training = Training(recipe, site, seed=0, peers=processes)
    seeds = []
    for _ in range(2):
        training.run_epoch(lambda: seeds.append(torch.initial_seed()))
    trained = {
        "weights": training.network.state_dict(),
        "history": training.history,
        "seeds": seeds,
    }
    torch.save(trained, out / f"rank-{processes.rank}.pt")
    run = Run(
        benchmark="b",
        method="m",
        seed=0,
        data=DataSettings(),
        recipe=retinopathy_helpers.recipe(epochs=1),
    )
    execute(RunFolder(out, run), [site], peers=processes)


if __name__ == "__main__":
    with joined("cpu") as (joint, _):
        assert joint != ALONE
        work(joint, Path(sys.argv[1]))
