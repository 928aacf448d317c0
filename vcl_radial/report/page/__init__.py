"""One self-contained HTML page of many benchmarks: no network, no files beside it."""

from vcl_radial.report.page.html import Detail, Section, html_page

__all__ = ["Detail", "Section", "html_page"]
