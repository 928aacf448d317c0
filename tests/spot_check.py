"""`python tests/spot_check.py`: run cheap runs of the claims again, and compare their numbers.

`reports/spot-checks.toml` lists the runs. What came out is in `reports/spot-checks.csv`, from which
the pages say when they were last confirmed, at which commit and on which processor. It exits with
code 1 if a number is further off than the file allows. About 20 minutes, with the data.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from vcl_radial.errors import DataError  # noqa: E402
from vcl_radial.reporting.rows import Rows  # noqa: E402
from vcl_radial.runs import environment  # noqa: E402
from vcl_radial.runs.folder import write_atomically  # noqa: E402

LIST, RESULTS = ROOT / "reports" / "spot-checks.toml", ROOT / "reports" / "spot-checks.csv"


@dataclass(frozen=True)
class Check:
    """One run of a page.

    Attributes:
        page: the folder of the page below reports/.
        command: arguments of the program; `{out}` is an empty folder.
        made: the CSV file that it writes there.
        kept: the committed one, below reports/.
        scores: the columns that are compared.
        within: how far they may be apart, in their unit; less than the effect.
        claim: the statement of the page or the README that the run guards.
        effect: how the size of the claim is computed from committed rows: means of the `score`,
            of the rows `of` minus the rows `minus`, in `file` (by default `kept`).
        where: the rows that are compared, of both files.
        where_kept: of the committed file alone, where it names them otherwise or has more.
        named_kept: scores that the committed file has under other names.
        program: the package that runs the command, `vcl_radial` or `reports`.
    """

    page: str
    command: str
    made: str
    kept: str
    scores: list[str]
    within: float
    claim: str
    effect: dict[str, Any]
    where: dict[str, str | int] = field(default_factory=dict)
    where_kept: dict[str, str | int] = field(default_factory=dict)
    named_kept: dict[str, str] = field(default_factory=dict)
    program: str = "vcl_radial"

    @property
    def shown(self) -> str:
        """The command as the table of `reports/README.md` has it."""
        command = self.command.replace(" --out {out}", "").replace(" --to {out}", "")
        return command if self.program == "vcl_radial" else f"python -m {self.program} {command}"

    @property
    def effect_size(self) -> float:
        """The size of the claim, in the unit of the scores.

        Raises:
            DataError: a file or a row is missing.
        """
        rows = Rows.read(LIST.parent / self.effect.get("file", self.kept))
        of, minus = (rows.where(**self.effect[side]) for side in ("of", "minus"))
        return abs(of.number(self.effect["score"]) - minus.number(self.effect["score"]))

    def largest(self, out: Path) -> float:
        """The largest difference of a score.

        Raises:
            DataError: a file or a row is missing.
        """
        made = self._rows(out / self.made, self.where)
        kept = self._rows(LIST.parent / self.kept, self.where | self.where_kept)
        names = {theirs: ours for ours, theirs in self.named_kept.items()}
        kept = Rows(kept.table.rename(columns=names), kept.name)
        if made.count() != kept.count():
            raise DataError(f"{self.kept}: {kept.count()} rows, and {made.count()} were made")
        shared = [c for c in kept.table if c in made.table and c not in self.scores]
        # Files of before may have their rows in another order.
        by = [c for c in shared if set(kept.distinct(c)) == set(made.distinct(c))]
        made, kept = (Rows(r.table.sort_values(by, kind="stable"), r.name) for r in (made, kept))
        pairs = (zip(made.values(s), kept.values(s), strict=True) for s in self.scores)
        return max((_apart(*both) for of_score in pairs for both in of_score), default=0.0)

    def _rows(self, path: Path, where: dict[str, str | int]) -> Rows:
        rows = Rows.read(path)
        return rows.where(**where) if where else rows


def _apart(new: float, old: float) -> float:
    """How far two numbers are apart; a score that is not defined is so in both, or they are."""
    if math.isnan(new) or math.isnan(old):
        return 0.0 if math.isnan(new) and math.isnan(old) else math.inf
    return abs(new - old)


def main() -> int:
    """Run the checks, and write the table."""
    checks = [Check(**entry) for entry in tomllib.loads(LIST.read_text())["check"]]
    pages = list(dict.fromkeys(check.page for check in checks))
    parser = argparse.ArgumentParser(prog="python tests/spot_check.py", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(pages)}")
    options = parser.parse_args()
    if unknown := [page for page in options.pages if page not in pages]:
        parser.error(f"{unknown[0]!r} is none of {', '.join(pages)}")
    # Before the table is written, which a checkout that holds it would call a change.
    described = environment.describe("cpu", 1)
    failed = False
    for page in options.pages or pages:
        for check in checks:
            if check.page == page:
                failed |= not _confirmed(check, described)
    return int(failed)


def _confirmed(check: Check, described: Mapping[str, Any]) -> bool:
    """Run a check and put its line into the table, unless its command failed."""
    with tempfile.TemporaryDirectory(prefix="spot-check-") as scratch:
        command = check.command.format(out=scratch)
        print(f"{check.page}: {check.program} {command}", flush=True)
        arguments = [sys.executable, "-m", check.program, *command.split()]
        started = time.monotonic()
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"  failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
            return False
        try:
            apart = check.largest(Path(scratch))
        except DataError as error:
            print(f"  {error}")
            return False
    within = apart <= check.within
    print(f"  {apart:.3g} apart, {check.within:g} allowed; {time.monotonic() - started:.0f} s")
    if within:
        _add(check, apart, described)
    return within


def _add(check: Check, apart: float, described: Mapping[str, Any]) -> None:
    line = {
        "page": check.page,
        "command": check.shown,
        "scores": " ".join(check.scores),
        "apart": float(f"{apart:.3g}"),
        "within": check.within,
        "effect": float(f"{check.effect_size:.3g}"),
        "claim": check.claim,
        "commit": described["commit"],
        "processor": described["processor"],
        "day": time.strftime("%Y-%m-%d"),
    }
    table = pd.DataFrame([line])
    if RESULTS.exists():
        old = pd.read_csv(RESULTS)
        same = (old["page"] == line["page"]) & (old["command"] == line["command"])
        table = pd.concat([old[~same], table]).sort_values(["page", "command"])
    write_atomically(RESULTS, table.to_csv(index=False))


if __name__ == "__main__":
    sys.exit(main())
