"""Compare tiny runs of every method and track at two commits, bit by bit.

    python tests/pin.py BASE [OTHER]

BASE and OTHER are commits; without OTHER it is the working tree. Both run the same commands on this
machine, since other processors round in other ways. Compared are the tensors of every stored state
(after each task, or each epoch of photographs) and every number of the runs' tables. A tensor
counts by its bytes, type and shape, not by its name, so that names may change. Exit status 1 and
one line for each run that differs.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STREAM = "epochs=1 hidden=[8] batch_size=32 eval_samples=2 stream.first_tasks=3"
COMMANDS = {
    "split-digits-multi-head": ("", STREAM),
    "split-digits-single-head": ("", STREAM),
    "retinopathy-synthetic": (
        "retinopathy",
        "epochs=2 channels=1 batch_size=8 eval_samples=2 data.patients=40 data.validation=0.2 "
        "data.size=8",
    ),
    "diabetes": ("regression", "steps=10 eval_samples=4"),
    "diabetes-sequence": ("regression", "steps=10 eval_samples=4"),
    "bandit-mushroom": ("bandits", "data.rounds=40"),
}
"""The folder of the methods in baselines/, and settings, of each benchmark."""
LANES = "radial-vcl", "gaussian-vcl", "low-rank-vcl", "rdp-vcl", "ewc", "naive"
"""Methods that also run two seeds as one program."""
WITHOUT = "seconds", "finished"
"""Columns that differ from run to run."""


def commands(base: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield a name and the arguments of `vcl-radial` for each run, by the methods of a checkout."""
    for benchmark, (folder, settings) in COMMANDS.items():
        methods = sorted(path.stem for path in (base / "baselines" / folder).glob("*.toml"))
        for method in methods:
            command = ["run", benchmark, "--method", method, "--set", *settings.split()]
            yield f"{benchmark} {method}", [*command, "--seeds", "1"]
            if not folder and method in LANES:
                yield f"{benchmark} {method} lanes", [*command, "--seeds", "2", "--lanes", "2"]


def record(base: Path, results: Path) -> None:
    """Run all commands with the package that Python finds first, and write what they computed."""
    import torch
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.pyplot import Figure

    import vcl_radial
    from vcl_radial.cli import main

    sys.path.insert(0, str(Path(vcl_radial.__file__).parents[1] / "tests"))
    from small_data import small_mushrooms

    states: list[dict[str, int]] = []
    save, savefig = torch.save, Figure.savefig

    def recorded_save(state: Any, *args: Any, **keys: Any) -> None:
        states.append(Counter(_tensors(state)))
        save(state, *args, **keys)

    def empty_picture(figure: Figure, *args: Any, **keys: Any) -> None:
        """Save nothing but the paper: to draw takes longer than to train, and is not compared."""
        figure.clear()
        savefig(figure, *args, **keys)

    torch.save = recorded_save
    Figure.savefig = empty_picture
    ConstrainedLayoutEngine.execute = lambda *_: None
    outcomes = {}
    for name, command in commands(base):
        states.clear()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            small_mushrooms(Path("data/bandits"))
            data = ["--data-dir", "data"] if command[1].startswith("bandit") else []
            with contextlib.redirect_stdout(io.StringIO()):
                code = main([*command, *data, "--jobs", "1", "--device", "cpu", "--out", "runs"])
            outcomes[name] = {"code": code, "states": list(states), "tables": _tables(Path("runs"))}
        print(f"{name}: {len(states)} states", file=sys.stderr)
    results.write_text(json.dumps(outcomes))


def _tensors(state: Any) -> Iterator[str]:
    """Yield a digest of the bytes, the type and the shape of each tensor in a state."""
    import torch

    if isinstance(state, torch.Tensor):
        content = state.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        yield f"{state.dtype} {list(state.shape)} {hashlib.sha256(content).hexdigest()}"
    elif isinstance(state, Mapping):
        for value in state.values():
            yield from _tensors(value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from _tensors(value)


def _tables(runs: Path) -> dict[str, list[Any]]:
    """Return the rows of the tables of all runs, without what a run's place and time decide."""
    tables: dict[str, list[Any]] = {}
    for path in sorted(runs.glob("*/*/seed-*/*.csv")):
        seed = path.parent.name.rpartition("-")[0]  # without the digest of the settings
        rows = list(csv.DictReader(path.read_text().splitlines()))
        kept = [[value for key, value in row.items() if key not in WITHOUT] for row in rows]
        # A table in slices has a run on all rows at once beside it, with the same seed.
        tables.setdefault(f"{seed}/{path.name}", []).append(kept)
    return {name: sorted(rows_of_runs) for name, rows_of_runs in tables.items()}


def differences(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return a line for each run whose states or tables are not the same."""
    lines = []
    for name, expected in base.items():
        outcome = other.get(name)
        if outcome is None:
            lines.append(f"{name}: was not run")
        elif outcome["code"] != expected["code"]:
            lines.append(f"{name}: exit status {outcome['code']}, not {expected['code']}")
        elif len(outcome["states"]) != len(expected["states"]):
            lines.append(f"{name}: {len(outcome['states'])} states, not {len(expected['states'])}")
        elif outcome["states"] != expected["states"]:
            pairs = zip(outcome["states"], expected["states"], strict=True)
            first = next(number for number, (one, two) in enumerate(pairs, 1) if one != two)
            lines.append(f"{name}: state {first} of {len(expected['states'])}")
        elif outcome["tables"] != expected["tables"]:
            files = [
                f for f, rows in expected["tables"].items() if outcome["tables"].get(f) != rows
            ]
            lines.append(f"{name}: {', '.join(files) or 'a table that was not there'}")
    return lines


def compare(base: str, other: str | None) -> int:
    """Run both commits side by side, print what differs, and return the exit status."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as worktrees:
        checkouts = {}
        for side, commit in (("base", base), ("other", other)):
            checkouts[side] = ROOT
            if commit is not None:
                checkouts[side] = Path(scratch, side)
                _git("worktree", "add", "--quiet", "--detach", str(checkouts[side]), commit)
                worktrees.callback(_git, "worktree", "remove", "--force", str(checkouts[side]))
        # The working tree may have this script's changes: both sides use it.
        script = shutil.copy(__file__, scratch)
        workers = {}
        cores = sorted(os.sched_getaffinity(0))
        for side, checkout in checkouts.items():
            environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
            environment.pop("VCL_RADIAL_DATA", None)
            command = [sys.executable, script, str(checkouts["base"]), "--record", f"{side}.json"]
            workers[side] = subprocess.Popen(command, cwd=scratch, env=environment)
            # One core each: threads that wait for each other on a busy machine take minutes.
            os.sched_setaffinity(workers[side].pid, {cores[len(workers) % len(cores)]})
        codes = [worker.wait() for worker in workers.values()]
        if any(codes):
            print("pin: a side did not come to its end", file=sys.stderr)
            return 1
        base_runs, other_runs = (
            json.loads(Path(scratch, f"{side}.json").read_text()) for side in checkouts
        )
    lines = differences(base_runs, other_runs)
    failed = sum(outcome["code"] != 0 for outcome in base_runs.values())
    states = sum(len(outcome["states"]) for outcome in base_runs.values())
    print("\n".join(lines))
    print(f"{len(base_runs)} commands ({failed} refused), {states} states: {len(lines)} differ")
    return 1 if lines else 0


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", help="a commit")
    parser.add_argument("other", nargs="?", help="another (default: the working tree)")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.record is not None:
        record(Path(options.base), options.record)
        return 0
    return compare(options.base, options.other)


if __name__ == "__main__":
    sys.exit(main())
