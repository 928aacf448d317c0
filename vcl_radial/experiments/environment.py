"""Where a run's numbers came from: commit, versions, device."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vcl_radial import __version__

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


def describe(device: str, threads: int) -> dict[str, Any]:
    """What stands in `environment.json` besides the times."""
    # Ours is asked of the code itself: a checkout need not be installed.
    versions: dict[str, str | None] = {"vcl-radial": __version__}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "device": device,
        "threads": threads,
        "packages": versions,
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
