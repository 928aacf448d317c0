"""The pages of the papers: every figure with the published claims beside ours, and its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reports.pages import environment
from reports.papers.analysis import Record
from reports.papers.catalogue import pages
from vcl_radial.metrics.verdicts import Verdict
from vcl_radial.reporting.blocks import Claim, claims_table
from vcl_radial.reporting.markdown import escaped, table
from vcl_radial.reporting.provenance import origin


def to_text(claims: Sequence[Claim]) -> str:
    """Published claims beside ours, for the terminal."""
    return "\n".join(f"  {c.published}\n    {c.ours}\n    {c.conclusion}" for c in claims)


def to_markdown(records: Mapping[str, Record]) -> str:
    """The README of a folder, page by page.

    Args:
        records: records by names of figures; NAME.png and NAME.csv.gz lie beside the README.
    """
    shown = [
        (page, {name: records[name] for name in page.figures if name in records})
        for page in pages().values()
    ]
    jinja = environment(Path(__file__).parent)
    jinja.filters["escaped"] = escaped
    return jinja.get_template("page.jinja").render(
        pages=[(page, of_page) for page, of_page in shown if of_page],
        verdicts=[str(verdict) for verdict in Verdict],
        claims_table=claims_table,
        table=table,
        origin=origin,
    )
