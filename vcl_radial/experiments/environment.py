"""Where a run's numbers came from: commit, versions, device."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Mapping
from functools import lru_cache
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
