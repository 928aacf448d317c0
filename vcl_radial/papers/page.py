"""The pages of the papers: every figure with the published claims beside ours, and its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vcl_radial.papers.analysis import Record
from vcl_radial.papers.catalogue import Page, pages
from vcl_radial.report import markdown
from vcl_radial.report.provenance import origin
from vcl_radial.runs.sections import Block, Claim, Figure, Report, Section, Text, claims_table


def to_text(claims: Sequence[Claim]) -> str:
    """Published beside ours, for the terminal."""
    lines = []
    for claim in claims:
        lines += [f"  {claim.published}", f"    {claim.ours}", f"    {claim.conclusion}"]
    return "\n".join(lines)


def to_markdown(records: Mapping[str, Record]) -> str:
    """The README of a folder, page by page.

    Args:
        records: by the names of the figures; NAME.png and NAME.csv.gz lie beside the README.
    """
    parts = []
    for page in pages().values():
        sections = [
            Section(f"{name}: {shows}", _blocks(name, records[name]))
            for name, shows in page.figures.items()
            if name in records
        ]
        if sections:
            parts.append(markdown.page(_report(page, sections)))
    return "\n".join(parts)


def _report(page: Page, sections: Sequence[Section]) -> Report:
    return Report(page.title, [Section("", [Text(page.introduction)]), *sections])


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
