"""Pages whose numbers are computed: Jinja templates over the CSV files beside them.

A template `README.md.jinja` makes `README.md` in its folder. It has the functions of `FUNCTIONS`:
`csv("runs.csv")` reads a file below the template's folder (or beside it, by `../`), and its rows
give means and paired differences (`vcl_radial.reporting.rows`), and the verdicts on published
claims (`vcl_radial.metrics.verdicts`). `record("cost.json")` reads a JSON file. All tests of a page
are one family for Holm's correction; `quote("uci")` adds the tests of the page in that folder. A
command that fills another folder makes its page there from the same template.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, Template, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from reports.central import page as central
from reports.family import Family
from reports.method_table import method_table
from reports.methods.table import methods_by_track
from reports.papers import catalogue
from reports.price import page as price
from reports.seeds.pruning.lenet.size import Architecture
from vcl_radial.errors import DataError, UserError, VclRadialError
from vcl_radial.files.reading import read_json, read_text
from vcl_radial.metrics import verdicts
from vcl_radial.metrics.bimodality import bimodality_gap_fraction
from vcl_radial.metrics.printed_likelihood import log_likelihood_over_points
from vcl_radial.metrics.seeds import sign_test
from vcl_radial.reporting import markdown
from vcl_radial.reporting.blocks import Claim, claims_table, size
from vcl_radial.reporting.provenance import origin
from vcl_radial.reporting.rows import Rows, p_value
from vcl_radial.runs.folder import write_atomically

ENDING = ".jinja"
SHARED = Path(__file__).parent / "papers"
"""The folder of templates that several templates include."""


def _claims(claims: Sequence[Mapping[str, Any]]) -> str:
    """The claims of a record as a table."""
    made = [Claim(**{**claim, "verdict": verdicts.Verdict(claim["verdict"])}) for claim in claims]
    return markdown.table(claims_table(made))


FUNCTIONS: dict[str, Any] = {
    "NATS": verdicts.NATS,
    "POINTS_OF_ACCURACY": verdicts.POINTS_OF_ACCURACY,
    "method_table": method_table,
    "methods_by_track": methods_by_track,
    "log_likelihood_over_points": log_likelihood_over_points,
    "verdict_of_difference": verdicts.verdict_of_difference,
    "verdict_of_statement": verdicts.verdict_of_statement,
    "p_value": p_value,
    "side": verdicts.side,
    "size": size,
    "bimodality_gap_fraction": bimodality_gap_fraction,
    "lenet": Architecture.of,
    "papers": catalogue.pages,
    "claims_table": _claims,
    "verdicts": [str(verdict) for verdict in verdicts.Verdict],
    "origin": origin,
    "verdict_of_parts": verdicts.verdict_of_parts,
}


def templates(path: Path) -> list[Path]:
    """A template, or all templates in a folder and below it.

    Raises:
        UserError: there is no template.
    """
    below = [path] if path.is_file() else sorted(path.rglob(f"*.md{ENDING}"))
    if not below or not below[0].name.endswith(f".md{ENDING}"):
        raise UserError(f"name a template as README.md{ENDING}, or a folder with some", path)
    return below


def page_of(template: Path) -> Path:
    """The page that a template makes."""
    return template.with_name(template.name.removesuffix(ENDING))


def _environment(folder: Path) -> SandboxedEnvironment:
    """Jinja, for the templates of a folder."""
    jinja = SandboxedEnvironment(
        loader=FileSystemLoader([folder, SHARED]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters["escaped"] = markdown.escaped
    return jinja


def render(templates: Sequence[Path], to: Path | None = None) -> dict[Path, str]:
    """The texts of pages, by the path of each page.

    Args:
        templates: the templates.
        to: the folder of data and page; None for the folder of each template.

    Raises:
        UserError: a template cannot be read, or its files lack a value; the message names the line.
    """

    @cache
    def draft(template: Path) -> tuple[Template, Family, str]:
        """A template, its tests, and its page before the tests are corrected."""
        folder, family = to or template.parent, Family()

        def quote(*names: str) -> str:
            family.quoted = [draft(folder / name / f"README.md{ENDING}")[1] for name in names]
            return ""

        jinja = _environment(template.parent)
        jinja.globals.update(FUNCTIONS, quote=quote, **_functions(folder, family))
        with _errors_of(template):
            page = jinja.get_template(template.name)
            text = page.render()
        family.close()
        return page, family, text

    texts = {}
    for template in templates:
        page, family, text = draft(template)
        if family.has_tests:
            with _errors_of(template):
                text = page.render()
        texts[to / "README.md" if to else page_of(template)] = text
    return texts


@contextmanager
def _errors_of(template: Path) -> Iterator[None]:
    """Name the template and its line in errors."""
    try:
        yield
    except (
        VclRadialError,
        TemplateError,
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
    ) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(reason, f"{template}{_line(error, template.name)}") from None


def _functions(folder: Path, family: Family) -> dict[str, Callable[..., Any]]:
    """The functions of a template that read files of its folder or make tests of its page."""

    @cache
    def csv(name: str, overlap: float = 0.0) -> Rows:
        rows = Rows.read(folder / name)
        return replace(rows, correct=family.corrected, overlap=overlap)

    def speed() -> dict[str, Any]:
        from benchmarks.speed.measuring import sections

        return sections(folder)

    def p_of_counts(above: int, pairs: int) -> float:
        return family.corrected(("counts", above, pairs), sign_test(above, pairs))

    return {
        "csv": csv,
        "verdict_of_figure": partial(verdicts.verdict_of_figure, correct=family.corrected),
        "record": lambda name: _record(folder / name),
        "records": partial(records, folder),
        "central": lambda name=".": central.contents(folder / name),
        "price": lambda: price.contents(folder, family.corrected),
        "speed": speed,
        "sign_test": p_of_counts,
    }


def records(folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """The results `NAME.json` that a folder has, by name.

    Raises:
        DataError: a file is damaged.
    """
    return {n: _record(folder / f"{n}.json") for n in names if (folder / f"{n}.json").is_file()}


def _record(path: Path) -> Any:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read ({' '.join(str(error).split())})", path) from None


def write(templates: Sequence[Path], to: Path | None = None) -> list[Path]:
    """Write the pages of templates, as `render` makes them; return the pages that changed.

    Raises:
        UserError: see `render`, or a page cannot be written.
    """
    changed = {page: text for page, text in render(templates, to).items() if _text(page) != text}
    for page, text in changed.items():
        write_atomically(page, text)
    return [*changed]


def differences(templates: Sequence[Path]) -> list[str]:
    """The lines in which pages differ from the current output of their templates.

    Raises:
        UserError: see `render`.
    """
    lines: list[str] = []
    for page, text in render(templates).items():
        old, new = (_text(page) or "").splitlines(), text.splitlines()
        lines += difflib.unified_diff(old, new, str(page), "as its files make it", lineterm="", n=0)
    return lines


def _text(page: Path) -> str | None:
    try:
        return read_text(page)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise UserError(f"cannot be read ({' '.join(str(error).split())})", page) from None


def _line(error: BaseException, name: str) -> str:
    """The line of the template at which it failed, as `:12`."""
    number = getattr(error, "lineno", None)
    trace = error.__traceback__
    while number is None and trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(name):
            number = trace.tb_lineno
        trace = trace.tb_next
    return "" if number is None else f":{number}"
