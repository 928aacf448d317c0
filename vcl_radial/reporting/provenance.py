"""The provenance of the numbers of a report: seeds, commit, device, dates, commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vcl_radial.reporting.blocks import Facts
from vcl_radial.runs.environment import seconds
from vcl_radial.runs.track import FinishedRun

FILE = "origin.csv"

_COMPARED = ("epochs", "first_task_epochs", "steps", "network", "hidden", "channels", "batch_size")
"""Keys of recipes that a comparison of methods should name where they differ."""

Environment = Mapping[str, Any]
"""The `environment.json` of a run, or a result of `vcl_radial.runs.environment.describe`."""


def behind(
    environments: Sequence[Environment],
    *,
    seeds: Iterable[int] = (),
    evaluated_on: Iterable[str] = (),
    more: Facts = (),
) -> Facts:
    """The facts about the origin of numbers, from the environments of their runs.

    The `seconds` of a run are a number, or a table of numbers by phase.

    Args:
        environments: environments of all runs.
        seeds: seeds of the runs.
        evaluated_on: the data on which the runs were scored.
        more: facts of the track, placed before the device.
    """
    facts: list[tuple[str, list[str]]] = []
    if data := _sorted(evaluated_on):
        facts.append(("evaluated on", [f"{', '.join(data)} data"]))
    if numbers := sorted(set(seeds)):
        facts.append(("seeds", [", ".join(map(str, numbers))]))
    facts += [(name, list(lines)) for name, lines in more]
    if environments:
        facts.append(("commit", [", ".join(_commits(environments))]))
        facts.append(("device", _sorted(_device(e) for e in environments)))
        facts.append(("finished", [_time(environments)]))
    if known := _sorted(e["command"] for e in environments if e.get("command") is not None):
        facts.append(("command", known))
    return facts


def different_recipes(runs: Sequence[FinishedRun]) -> Facts:
    """The length of the training, the network and the batch, as far as methods differ in them."""
    lines = []
    for key in _COMPARED:
        values: dict[str, dict[str, None]] = {}
        for run in runs:
            if key in run.spec.recipe:
                values.setdefault(run.method, {})[str(run.spec.recipe[key])] = None
        by_value: dict[str, list[str]] = {}
        for method, chosen in values.items():
            by_value.setdefault(" or ".join(chosen), []).append(method)
        if len(by_value) > 1:
            texts = [f"{value} ({', '.join(names)})" for value, names in by_value.items()]
            lines.append(f"{key}: {', '.join(texts)}")
    return [("methods differ in", lines)] if lines else []


def origin_csv(runs: Sequence[FinishedRun]) -> str:
    """The CSV of commit, processor, version of torch and day of every run."""
    import pandas as pd

    lines = [
        {
            "method": run.method,
            "seed": run.spec.seed,
            "commit": run.environment.get("commit"),
            "processor": run.environment.get("processor"),
            "torch": run.environment.get("packages", {}).get("torch"),
            "finished": str(run.environment.get("finished", ""))[:10],
        }
        for run in runs
    ]
    return pd.DataFrame(lines).to_csv(index=False)


def origin(command: str, environment: Environment, more: str) -> str:
    """The origin of one result in a line; `more` is placed between command and commit."""
    versions = {"Python": environment["python"], **environment["packages"]}
    packages = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    return (
        f"`{command}`; {more}; commit: {environment['commit'] or 'none (no checkout)'}; device: "
        f"{environment['device']} ({environment['processor']}), {environment['threads']} "
        f"thread(s); {packages}"
    )


def _device(environment: Environment) -> str:
    threads = environment.get("threads", 1)
    torch = environment.get("packages", {}).get("torch") or "unknown"
    return (
        f"{environment.get('device') or 'unknown'} ({environment.get('processor') or 'unknown'}), "
        f"{threads} thread(s) a run, torch {torch}"
    )


def _time(environments: Sequence[Environment]) -> str:
    """The days on which the runs were finished, if known, and their total time."""
    total = sum(map(seconds, environments))
    time = f"{total / 3600:.2f} hours" if total >= 360 else f"{total / 60:.1f} minutes"
    if total < 60:
        time = f"{total:.2g} seconds"
    text = f"{time} of training and evaluation in all"
    days = _sorted(str(e["finished"])[:10] for e in environments if "finished" in e)
    return "; ".join([" to ".join(dict.fromkeys((days[0], days[-1]))), text]) if days else text


def _commits(environments: Sequence[Environment]) -> list[str]:
    """The commits; with the versions of this package, if there are several."""
    versions = [e.get("packages", {}).get("vcl-radial") or "unknown" for e in environments]
    commits = [e.get("commit") or "none (no checkout)" for e in environments]
    if len(set(versions)) == 1:
        return _sorted(commits)
    return _sorted(f"{c} of vcl-radial {v}" for c, v in zip(commits, versions, strict=True))


def _sorted(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts))
