"""Pages whose numbers are computed: Jinja templates over the CSV files that lie beside them.

A template `README.md.jinja` makes `README.md` in its folder. It has the functions of `FUNCTIONS`:
`csv("runs.csv")` reads a file below the template's folder (or beside it, by `../`), and its rows
say means and paired differences (`vcl_radial.reporting.rows`), and what these say of a published
claim (`vcl_radial.metrics.verdicts`). `record("cost.json")` reads a JSON file. All tests of a page
are one family by Holm's correction; `quote("uci")` has the tests of the page in that folder.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from reports.family import Family
from vcl_radial.errors import DataError, UserError, VclRadialError
from vcl_radial.files.reading import read_json, read_text
from vcl_radial.metrics import verdicts
from vcl_radial.metrics.bimodality import bimodality_gap_fraction
from vcl_radial.metrics.printed_likelihood import log_likelihood_over_points
from vcl_radial.metrics.seeds import sign_test
from vcl_radial.reporting.rows import Difference, Rows, p_value
from vcl_radial.runs.folder import write_atomically

ENDING = ".jinja"

FUNCTIONS: dict[str, Any] = {
    "NATS": verdicts.NATS,
    "POINTS_OF_ACCURACY": verdicts.POINTS_OF_ACCURACY,
    "log_likelihood_over_points": log_likelihood_over_points,
    "verdict_of_difference": verdicts.verdict_of_difference,
    "verdict_of_statement": verdicts.verdict_of_statement,
    "p_value": p_value,
    "side": verdicts.side,
    "bimodality_gap_fraction": bimodality_gap_fraction,
    "verdict_of_parts": verdicts.verdict_of_parts,
}


def templates(path: Path) -> list[Path]:
    """A template, or all in a folder and below it.

    Raises:
        UserError: there is no template.
    """
    if path.is_file() and path.name.endswith(f".md{ENDING}"):
        return [path]
    if not path.is_dir():
        fault = "is no template" if path.exists() else "there is no such file or folder"
        raise UserError(f"{path}: {fault}; name a folder, or a template as README.md{ENDING}")
    below = sorted(path.rglob(f"*.md{ENDING}"))
    if not below:
        raise UserError(f"{path}: holds no template; one is named as its page, with {ENDING}")
    return below


def page_of(template: Path) -> Path:
    """The page that a template makes."""
    return template.with_name(template.name.removesuffix(ENDING))


def render(template: Path) -> str:
    """A page as text.

    Raises:
        UserError: the template cannot be read, or its files lack a value; names the line.
    """
    return _rendered(template)[0]


def _rendered(template: Path) -> tuple[str, Family]:
    """A page as text, and its tests."""
    from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        loader=FileSystemLoader(template.parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    family = Family()
    environment.globals.update(FUNCTIONS, **_functions(template.parent, family))
    try:
        page = environment.get_template(template.name)
        page.render()
        family.close()
        return page.render(), family
    except (
        VclRadialError,
        TemplateError,
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
    ) as error:
        reason = _without_class(" ".join(str(error).split()))
        raise UserError(f"{template}{_line(error, template.name)}: {reason}") from None


def _functions(folder: Path, family: Family) -> dict[str, Callable[..., Any]]:
    """What a template calls that reads files of its folder, or makes tests of its page."""

    @cache
    def csv(name: str, overlap: float = 0.0) -> Rows:
        rows = Rows.read(folder / name)
        return replace(rows, correct=family.corrected, overlap=overlap)

    def record(name: str) -> Any:
        path = folder / name
        try:
            return read_json(path)
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read ({' '.join(str(error).split())})") from None

    def quote(*names: str) -> str:
        if not family.quoted:
            family.quoted = [_rendered(folder / name / f"README.md{ENDING}")[1] for name in names]
        return ""

    def p_of_counts(above: int, pairs: int) -> float:
        return family.corrected(("counts", above, pairs), sign_test(above, pairs))

    return {
        "csv": csv,
        "verdict_of_figure": partial(verdicts.verdict_of_figure, correct=family.corrected),
        "quote": quote,
        "record": record,
        "sign_test": p_of_counts,
    }


def write(paths: Sequence[Path]) -> list[Path]:
    """Write the pages of templates; the pages that changed.

    Raises:
        UserError: see `render`, or a page cannot be written.
    """
    texts = {page_of(path): render(path) for path in paths}
    changed = [page for page, text in texts.items() if _text(page) != text]
    for page in changed:
        write_atomically(page, texts[page])
    return changed


def differences(paths: Sequence[Path]) -> list[str]:
    """The lines in which pages differ from those that their templates make now.

    Raises:
        UserError: see `render`.
    """
    lines: list[str] = []
    for path in paths:
        page = page_of(path)
        old, new = (_text(page) or "").splitlines(), render(path).splitlines()
        lines += difflib.unified_diff(old, new, str(page), f"made of {path.name}", lineterm="", n=0)
    return lines


def _text(page: Path) -> str | None:
    try:
        return read_text(page)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise UserError(f"{page}: cannot be read ({' '.join(str(error).split())})") from None


def _without_class(reason: str) -> str:
    """What Jinja says of a name that an object has not, in words of templates."""
    match = re.fullmatch(r"'(?:[\w.]+\.)?(\w+) object' has no attribute '(\w+)'", reason)
    known = [kind for kind in (Rows, Difference) if match and kind.__name__ == match[1]]
    if match is None or not known:
        return reason
    names = {name for name in (*vars(known[0]), *known[0].__annotations__) if name[0] != "_"}
    return f"{known[0].__name__} has no {match[2]!r}; it has {', '.join(sorted(names))}"


def _line(error: BaseException, name: str) -> str:
    """The line of the template at which it failed, as `:12`."""
    number = getattr(error, "lineno", None)
    trace = error.__traceback__
    while number is None and trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(name):
            number = trace.tb_lineno
        trace = trace.tb_next
    return "" if number is None else f":{number}"
