"""Work in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.setting import Setting
from benchmarks.speed.training import BENCHMARK
from vcl_radial.errors import VclRadialError


def run_python(arguments: Sequence[str], answer_to: str | None = None) -> str:
    """Run Python with these arguments, as `run_command` does; no module of the current folder."""
    return run_command([sys.executable, "-P", *arguments], answer_to)


def run_command(command: Sequence[str], answer_to: str | None = None) -> str:
    """Run a command, and give what it prints; `answer_to` is its input.

    Raises:
        VclRadialError: it failed; in its own words.
    """
    answer = subprocess.run(
        command,
        input=answer_to,
        capture_output=True,
        text=True,
        check=False,
        env=_environment(),
    )
    if answer.returncode:
        raise VclRadialError(f"{' '.join(command)}: {answer.stderr.strip()}")
    return answer.stdout


def seconds_of(arguments: Sequence[str]) -> float:
    """Wall-clock seconds of `run_python`."""
    started = time.perf_counter()
    run_python(arguments)
    return time.perf_counter() - started


def of_run(benchmark: str, method: str, out: str, keys: Mapping[str, Any], *more: str) -> list[str]:
    """The arguments of Python for `vcl-radial run`, with `keys` as `--set` has them."""
    command = ["-m", "vcl_radial", "run", benchmark, "--method", method, "--out", out, *more]
    settings = [f"{key}={value}" for key, value in keys.items()]
    return [*command, *(["--set", *settings] if settings else [])]


def command_of_run(method: str, out: str, setting: Setting, *more: str) -> list[str]:
    """The arguments of Python for a run of the recipe on the images of a setting, in one job."""
    images, sizes = setting.images, setting.sizes
    keys = {"stream.dataset": images.dataset, **sizes.recipe, **sizes.run}
    more = (*more, "--jobs", "1", "--device", setting.device)
    if images.folder is not None:
        more += ("--data-dir", str(images.folder.absolute()))
    return of_run(BENCHMARK, method, out, keys, *more)


def _environment() -> dict[str, str]:
    """The environment of a new process that finds this checkout."""
    root = str(Path(__file__).parents[2])
    paths = [root, os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
