"""The environment that computed a run's numbers: commit, versions, device."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vcl_radial import __version__

Engine = tuple[str, bool]
"""What computes a run's steps: the name of a device, and whether the compiled library is used."""

_PACKAGES = ("torch", "torchvision", "avalanche-lib", "numpy", "pandas")


def commit() -> str | None:
    """The commit of the checkout that holds this package, "-dirty" if changed; else None."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


@lru_cache(maxsize=1)
def loaded() -> str | None:
    """The commit that this process has loaded; call it early, as the checkout may change later."""
    return commit()


def describe(device: str, threads: int, commits: Iterable[str | None] = ()) -> dict[str, Any]:
    """The content of `environment.json` without the times.

    Args:
        device: the device of the networks.
        threads: number of threads of the process.
        commits: commits of processes that computed earlier steps.
    """
    # The code states its version itself: a checkout need not be installed.
    versions: dict[str, str | None] = {"vcl-radial": __version__}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "commit": ", ".join(sorted({c for c in (*commits, loaded()) if c})) or None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "device": device,
        "threads": threads,
        "packages": versions,
    }


def seconds(environment: Mapping[str, Any]) -> float:
    """The total seconds of a run, by its `environment.json`."""
    spent = environment.get("seconds", 0.0)
    return float(sum(spent.values()) if isinstance(spent, Mapping) else spent)


def device_name(device: str) -> str:
    """The name of a device: "cpu", or the model of the GPU."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"


def engines_with(known: Iterable[Engine], device: str) -> list[Engine]:
    """The engines that a checkpoint names and the one of this process, without duplicates."""
    from vcl_radial import native

    current = device_name(device), native.unavailable() is None
    return list(dict.fromkeys([*((name, compiled) for name, compiled in known), current]))


def warn_if_mixed(checkpoint: Path, engines: Sequence[Engine]) -> None:
    """Print a warning if several engines have computed the steps of a resumed run."""
    names = [
        f"{device} with{'' if compiled else 'out'} the compiled library"
        for device, compiled in engines
    ]
    if len(names) > 1:
        print(
            f"{checkpoint}: was computed on {', '.join(names[:-1])}; now on {names[-1]}: its "
            "numbers may match neither; delete it to run this seed from its start",
            flush=True,
        )


def describe_engines(engines: Sequence[Engine]) -> dict[str, Any]:
    """The engines as `environment.json` holds them: one value, or a list where they differ."""
    devices, compiled = (sorted(set(column)) for column in zip(*engines, strict=True))
    return {
        "device": ", ".join(map(str, devices)),
        "compiled": compiled[0] if len(compiled) == 1 else compiled,
    }


def processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def distinct(environments: Iterable[Mapping[str, Any]], key: str) -> str:
    """The distinct values of a key, joined by commas; "none" where there is none."""
    return ", ".join(sorted({str(e.get(key) or "none") for e in environments})) or "none"
