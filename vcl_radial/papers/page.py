"""An analysis in words and numbers: for the terminal, as CSV, as a section of a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from vcl_radial.papers.analysis import Claim, Curve
from vcl_radial.papers.names import GROUPS, Group
from vcl_radial.papers.record import Record

COLUMNS = ("panel", "curve", "x", "y", "low", "high")


def to_csv(curves: Sequence[Curve]) -> str:
    """The numbers of a picture, tidy and in full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for curve in curves:
        empty = [""] * len(curve.x)
        low, high = curve.low or empty, curve.high or empty
        for row in zip(curve.x, curve.y, low, high, strict=True):
            writer.writerow((curve.panel, curve.name, *row))
    return text.getvalue()


def to_text(claims: Sequence[Claim]) -> str:
    """Published beside ours, for the terminal."""
    lines = []
    for claim in claims:
        lines += [f"  {claim.published}", f"    {claim.ours}", f"    {claim.verdict}"]
    return "\n".join(lines)


def to_markdown(records: Mapping[str, Record]) -> str:
    """The page: every analysis with its picture, the published claims beside ours, and its origin.

    Args:
        records: by the names of the analyses; NAME.png and NAME.csv lie beside the page.
    """
    lines: list[str] = []
    for group in GROUPS.values():
        of_group = {name: records[name] for name in group.analyses if name in records}
        if of_group:
            lines += ["", *_part(group, of_group)] if lines else _part(group, of_group)
    return "\n".join([*lines, ""])


def _part(group: Group, records: Mapping[str, Record]) -> list[str]:
    lines = [f"# {group.title}", "", group.introduction]
    for name, record in records.items():
        lines += ["", f"## {name}: {group.analyses[name]}", "", f"![{record.title}]({name}.png)"]
        for paragraph in record.shown:
            lines += ["", paragraph]
        lines += ["", *_table(("published", "ours", "verdict"), map(_cells, record.claims)), ""]
        lines += [f"- {note}" for note in record.notes]
        lines += [f"- {key}: {value}" for key, value in record.settings]
        lines += [f"- source: {record.source}; numbers: [{name}.csv]({name}.csv)", _origin(record)]
    return lines


def _cells(claim: Claim) -> Sequence[str]:
    return claim.published, claim.ours, claim.verdict


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    # A density of |w| has bars of its own.
    body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *body)]


def _origin(record: Record) -> str:
    where = record.environment
    packages = ", ".join(f"{name} {v}" for name, v in where["packages"].items() if v)
    return (
        f"- `{record.command}`, {record.seconds:.0f} s of processor time; commit: "
        f"{where['commit'] or 'none (no checkout)'}; {where['processor']}, 1 thread; "
        f"Python {where['python']}, {packages}"
    )
