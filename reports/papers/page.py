"""The pages of the papers: every figure with the published claims beside ours, and its origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from reports.papers.analysis import Record
from reports.papers.catalogue import Page, pages
from vcl_radial.metrics.verdicts import Verdict
from vcl_radial.reporting import markdown
from vcl_radial.reporting.provenance import origin
from vcl_radial.runs.sections import (
    Block,
    Claim,
    Column,
    Figure,
    Report,
    Section,
    Table,
    Text,
    claims_table,
)


def to_text(claims: Sequence[Claim]) -> str:
    """Published beside ours, for the terminal."""
    lines = []
    for claim in claims:
        lines += [f"  {claim.published}", f"    {claim.ours}", f"    {claim.conclusion}"]
    return "\n".join(lines)


def to_markdown(records: Mapping[str, Record]) -> str:
    """The README of a folder, page by page.

    Args:
        records: records by names of figures; NAME.png and NAME.csv.gz lie beside the README.
    """
    parts = []
    for page in pages().values():
        sections = [
            Section(f"{name}: {shows}", _blocks(name, records[name]))
            for name, shows in page.figures.items()
            if name in records
        ]
        if sections:
            shown = {name: records[name] for name in page.figures if name in records}
            parts.append(markdown.page(_report(page, sections, shown)))
    return "\n".join(parts)


def _report(page: Page, sections: Sequence[Section], records: Mapping[str, Record]) -> Report:
    overview = [_overview(page, records)] if len(records) > 1 else []
    return Report(page.title, [Section("", [Text(page.introduction), *overview]), *sections])


def _overview(page: Page, records: Mapping[str, Record]) -> Table:
    """How many claims of each figure have each verdict."""
    rows = []
    for name, record in records.items():
        verdicts = Counter(claim.verdict for claim in record.claims)
        counts = [str(verdicts[verdict] or "–") for verdict in Verdict]
        rows.append([name, page.figures[name], *counts])
    heads = [Column(verdict.value) for verdict in Verdict]
    return Table([Column("figure", is_text=True), Column("shows", is_text=True), *heads], rows)


def _blocks(name: str, record: Record) -> list[Block]:
    points = [
        *record.notes,
        *(f"{key}: {value}" for key, value in record.settings),
        f"source: {record.source}; numbers: [{name}.csv.gz]({name}.csv.gz)",
        origin(record.command, record.environment, f"{record.seconds:.0f} s of processor time"),
    ]
    return [
        Figure(name, None, record.title),
        *map(Text, record.shown),
        *([claims_table(record.claims)] if record.claims else []),
        *record.tables,
        Text(points=points),
    ]
