"""What stands behind the numbers of a report: seeds, commit, device, dates, commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vcl_radial.report.results import Environment, FinishedRun

Facts = list[tuple[str, list[str]]]
"""A name, and the lines that are to be said of it."""


def behind(runs: Sequence[FinishedRun]) -> Facts:
    """What stands behind runs of one benchmark."""
    environments = [run.environment for run in runs]
    hours = sum(sum(e.seconds.values()) for e in environments) / 3600
    days = _sorted(e.finished[:10] for e in environments)
    finished = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    facts = [
        ("evaluated on", [f"{', '.join(_sorted(run.spec.evaluate_on for run in runs))} data"]),
        ("seeds", [", ".join(str(seed) for seed in sorted({run.spec.seed for run in runs}))]),
        ("commit", [", ".join(_commits(environments))]),
        (
            "device",
            _sorted(
                f"{e.device} ({e.processor}), {e.threads} thread(s) a run, "
                f"torch {e.packages.get('torch') or 'unknown'}"
                for e in environments
            ),
        ),
        ("finished", [f"{finished}; {hours:.2f} hours of training and evaluation in all"]),
    ]
    if commands := _sorted(e.command for e in environments if e.command is not None):
        facts.append(("command", commands))
    return facts


def _commits(environments: Sequence[Environment]) -> list[str]:
    """Each commit; where there are several versions of this package, with its own."""
    versions = [e.packages.get("vcl-radial") or "unknown" for e in environments]
    commits = [e.commit or "none (no checkout)" for e in environments]
    if len(set(versions)) == 1:
        return _sorted(commits)
    return _sorted(f"{c} of vcl-radial {v}" for c, v in zip(commits, versions, strict=True))


def _sorted(words: Iterable[str]) -> list[str]:
    return sorted(set(words))
