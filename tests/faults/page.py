"""The page of what was tried and what held."""

import platform
import re
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from work import RESULTS

_CASES, _HELD = -4, -3
"""Columns of a line of the table, split at its bars."""

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


@dataclass(frozen=True)
class Kept:
    """Parts of an earlier page, as text.

    Attributes:
        rows: lines of the table by kind.
        lost: lines of what was lost.
        origins: where the figures came from.
    """

    rows: Mapping[str, str]
    lost: Sequence[str] = ()
    origins: str = ""

    @classmethod
    def of(cls, text: str, renewed: Collection[str]) -> "Kept":
        """What stays of a page when some kinds are renewed."""
        lines = text.splitlines()
        named = {m[1]: line for line in lines if (m := re.search(r"\(`([\w-]+)`\) \|", line))}
        lost = [
            line for line in lines if (m := re.match(r"- `([\w-]+)`: ", line)) and m[1] in named
        ]
        return cls(
            {name: line for name, line in named.items() if name not in renewed},
            [line for line in lost if line.split("`")[1] not in renewed],
            "".join(re.findall(r"<details>.*?</details>\n", text, re.DOTALL)),
        )

    def count(self, column: int) -> int:
        """The sum of a column of numbers; a kind that was skipped has none."""
        cells = (line.rsplit("|")[column].strip().replace(",", "") for line in self.rows.values())
        return sum(int(cell) for cell in cells if cell.isdigit())


def page(
    rows: Sequence[Row], behind: Sequence[str], seconds: float, cpu: float, kept: Kept | None = None
) -> str:
    """The page as Markdown, in the order of the kinds.

    Args:
        rows: of the kinds.
        behind: where the figures came from: `where_from` before the first case.
        seconds: that all took.
        cpu: of processor time that it used.
        kept: the rows of other kinds on an earlier page.
    """
    from kinds import KINDS

    kept = kept or Kept({})
    cases = sum(row.cases for row in rows) + kept.count(_CASES)
    held = sum(row.held for row in rows) + kept.count(_HELD)
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
    in_table = {**kept.rows}
    for row in rows:
        held_text = row.skipped or f"{row.held:,}"
        in_table[row.name] = (
            f"| {row.title} (`{row.name}`) | {row.must} | {row.cases:,} | {held_text} | "
            f"{row.seconds:,.0f} |"
        )
    lines += [in_table[kind.name] for kind in KINDS if kind.name in in_table]
    if kept.lost or any(row.lost for row in rows):
        lines += ["", "## What was lost", "", *kept.lost]
        lines += [f"- `{row.name}`: {_quoted(fault)}" for row in rows for fault in row.lost[:10]]
        lines += [
            f"- `{row.name}`: and {len(row.lost) - 10} more" for row in rows if len(row.lost) > 10
        ]
    names = ", ".join(f"`{row.name}`" for row in rows)
    figures = f"the figures of {names}" if kept.rows else "these figures"
    lines += ["", "<details>", f"<summary>Where {figures} came from</summary>", "", *behind]
    lines += [
        f"- {seconds / 60:.0f} minutes by the clock, as the seconds in the table are, with kinds "
        f"side by side; {cpu / 60:.0f} minutes of processor time",
    ]
    return "\n".join([*lines, "", "</details>", ""]) + (f"\n{kept.origins}" if kept.rows else "")


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
