"""Hide warnings raised inside third-party packages."""

from __future__ import annotations

import site
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

_SUITE = Path(__file__).parents[1]
_PACKAGES = [
    Path(folder)
    for folder in (
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    )
]
_shown: set[tuple[str, int, str]] = set()


@contextmanager
def quiet() -> Iterator[None]:
    """Show only warnings of the suite's and the user's files inside.

    A line of a user's file shows each warning once.
    """
    show = warnings.showwarning
    if hasattr(show, "quiet"):
        yield
        return
    with warnings.catch_warnings():

        def show_selected(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> Any:
            warning = filename, lineno, str(message)
            if is_of_suite(filename) or (not is_of_package(filename) and warning not in _shown):
                _shown.add(warning)
                show(message, category, filename, lineno, file, line)

        if any(action == "error" for action, *_ in warnings.filters):
            warnings.simplefilter("default")  # a warning of a package must not become an error
        show_selected.quiet = True  # type: ignore[attr-defined]
        warnings.showwarning = show_selected
        yield


def is_of_suite(filename: str) -> bool:
    """Whether a file belongs to this package."""
    return _is_in(filename, _SUITE)


def is_of_package(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package, not to a user."""
    return filename.startswith("<frozen") or any(_is_in(filename, root) for root in _PACKAGES)


def _is_in(filename: str, folder: Path) -> bool:
    path = Path(filename)
    return path.is_relative_to(folder) or path.resolve().is_relative_to(folder.resolve())
