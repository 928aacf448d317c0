"""Where a run's numbers came from: commit, versions, device."""

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
"""What makes a run's steps: a device, in words, and whether the compiled library is there."""

_PACKAGES = ("torch", "torchvision", "avalanche-lib", "numpy", "pandas")


def commit() -> str | None:
    """The commit of the checkout this package runs from, "-dirty" if changed; else None."""
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
    """The commit that this process has loaded: ask before the work, later it may be another."""
    return commit()


def describe(device: str, threads: int, commits: Iterable[str | None] = ()) -> dict[str, Any]:
    """What stands in `environment.json` besides the times.

    Args:
        device: of the networks.
        threads: of the process.
        commits: that had worked on it before this process did.
    """
    # Ours is asked of the code itself: a checkout need not be installed.
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
    """What a run took, all in all, by its `environment.json`."""
    spent = environment.get("seconds", 0.0)
    return float(sum(spent.values()) if isinstance(spent, Mapping) else spent)


def device_name(device: str) -> str:
    """A device in words: "cpu", or the model of the GPU."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"


def engines_with(known: Iterable[Engine], device: str) -> list[Engine]:
    """Those that a checkpoint names, each once, and that of this process on a device."""
    from vcl_radial import native

    here = device_name(device), native.unavailable() is None
    return list(dict.fromkeys([*((name, there) for name, there in known), here]))


def tell_if_mixed(checkpoint: Path, engines: Sequence[Engine]) -> None:
    """Say of a run that goes on that not all of its steps are made by one engine."""
    words = [
        f"{device} with{'' if there else 'out'} the compiled library" for device, there in engines
    ]
    if len(words) > 1:
        print(
            f"{checkpoint}: was computed on {', '.join(words[:-1])}; now on {words[-1]}: its "
            "numbers may be those of neither; delete it to run this seed from its start",
            flush=True,
        )


def of_engines(engines: Sequence[Engine]) -> dict[str, Any]:
    """What stands of them in `environment.json`: every answer once, a list where they differ."""
    devices, compiled = (sorted(set(each)) for each in zip(*engines, strict=True))
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
    """What descriptions say of a key: every answer once, in words; "none" where there is none."""
    return ", ".join(sorted({str(each.get(key) or "none") for each in environments})) or "none"
