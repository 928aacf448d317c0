"""The page of what was tried and what held."""

import platform
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from work import RESULTS

_PACKAGES = ("torch", "avalanche-lib", "numpy", "pandas", "optuna", "hypothesis")


@dataclass(frozen=True)
class Row:
    """What came of one kind of fault.

    Attributes:
        name: as `--only` takes it.
        title: what is done to the suite.
        must: what must hold.
        cases: how many there were.
        lost: those that did not hold, in words.
        skipped: why it was not tried; None if it was.
        seconds: how long it took.
    """

    name: str
    title: str
    must: str
    cases: int
    lost: Sequence[str]
    skipped: str | None
    seconds: float

    @property
    def held(self) -> int:
        """How many cases held."""
        return self.cases - len(self.lost)


def page(rows: Sequence[Row], behind: Sequence[str], seconds: float, cpu: float) -> str:
    """The page as Markdown.

    Args:
        rows: of the kinds.
        behind: where the figures came from: `where_from` before the first case.
        seconds: that all took.
        cpu: of processor time that it used.
    """
    cases, held = sum(row.cases for row in rows), sum(row.held for row in rows)
    lines = [
        "# What happens when something goes wrong",
        "",
        "**Question.** Is anything lost when a run or a sweep is killed, a disk is full, a file is "
        "damaged or a setting makes no sense?",
        "",
        f"**Answer.** {'No' if held == cases else 'Yes'}: {held:,} of {cases:,} cases held.",
        "",
        "Each row is a kind of fault, done to small runs and "
        "sweeps at moments drawn at random; a case has held if all of what must hold did. *The "
        "same* means the same bytes as those of a command that nothing happened to, in "
        f"{', '.join(f'`{name}`' for name in RESULTS)}, with no stray file beside them.",
        "",
        "| fault | must hold | cases | held | seconds |",
        "|---|---|--:|--:|--:|",
    ]
    for row in rows:
        held_text = row.skipped or f"{row.held:,}"
        lines.append(
            f"| {row.title} (`{row.name}`) | {row.must} | {row.cases:,} | {held_text} | "
            f"{row.seconds:,.0f} |"
        )
    if any(row.lost for row in rows):
        lines += ["", "## What was lost", ""]
        lines += [f"- `{row.name}`: {_quoted(fault)}" for row in rows for fault in row.lost[:10]]
        lines += [
            f"- `{row.name}`: and {len(row.lost) - 10} more" for row in rows if len(row.lost) > 10
        ]
    lines += ["", "<details>", "<summary>Where these figures came from</summary>", "", *behind]
    lines += [
        f"- {seconds / 60:.0f} minutes by the clock, as the seconds in the table are, with kinds "
        f"side by side; {cpu / 60:.0f} minutes of processor time",
    ]
    return "\n".join([*lines, "", "</details>", ""])


def _quoted(words: str) -> str:
    """A fault on one line of the page."""
    return " ".join(words.split())[:500].replace("|", "\\|")


def where_from(arguments: Sequence[str], cores: int) -> list[str]:
    """Where figures come from: command, commit, machine and packages."""
    from vcl_radial.runs.environment import commit, processor

    command = shlex.join(["python", "tests/faults", *arguments])
    packages = [f"{name} {_version(name)}" for name in _PACKAGES]
    return [
        f"- command: `{command}`",
        f"- commit: {commit() or 'not a checkout'}; {time.strftime('%Y-%m-%d', time.gmtime())}",
        f"- {platform.platform()}, {processor()}, {cores} cores; Python "
        f"{platform.python_version()}, {', '.join(packages)}",
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
