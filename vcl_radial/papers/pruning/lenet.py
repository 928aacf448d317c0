"""LeNet-5 pruned by the radii of its rows and columns, seed by seed (RDP, Table 2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch

from vcl_radial.papers.pruning.lenet_training import LeNetUnit, load_images, prune, train
from vcl_radial.runs import environment
from vcl_radial.runs.folder import make_folder
from vcl_radial.runs.result_file import read, write


def perform(
    units: Sequence[LeNetUnit], out: Path, to: Path, data_dir: Path | None, device: str
) -> None:
    """Train and prune what is not finished; each network goes on from its last epoch.

    Args:
        units: all of them.
        out: the folder of the results.
        to: the folder that the report is to go to, made before the work.
        data_dir: where the images lie; None for the usual places.
        device: "cpu" or "cuda".

    Raises:
        UserError: the data cannot be read or a result cannot be written.
        Diverged: a loss is no longer a finite number.
    """
    make_folder(out)
    make_folder(to)
    todo = [unit for unit in units if read(unit, out) is None]
    kept = f", {len(units) - len(todo)} kept from before" if len(todo) < len(units) else ""
    print(f"{units[0].dataset}: {len(todo)} networks to train{kept}", flush=True)
    for unit in todo:
        _carry_out(unit, out, data_dir, device)


def _carry_out(unit: LeNetUnit, out: Path, data_dir: Path | None, device: str) -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    described = environment.describe(device, 1)
    images = load_images(unit, data_dir, torch.device(device))
    checkpoint = unit.path(out).with_suffix(".pt")
    started = time.monotonic()

    def say(words: str) -> None:
        minutes = (time.monotonic() - started) / 60
        print(f"  seed {unit.seed}: {words}  [{minutes:.1f} min]", flush=True)

    network, seconds = train(unit, images, checkpoint, say)
    say("pruning")
    numbers = prune(network, unit, images)
    write(unit, out, numbers, described | {"seconds": seconds})
    checkpoint.unlink(missing_ok=True)
    say(f"{numbers['architecture']}, test error {numbers['error']:.2f} %")
