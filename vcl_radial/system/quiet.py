"""What other people's packages warn of is nothing that a user of ours can mend."""

from __future__ import annotations

import site
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

_SUITE = Path(__file__).parent
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
    """Inside, only warnings of the suite's and the user's files are shown, of imports and of use.

    A place in a user's file warns once of the same thing, however often it is passed.
    """
    show = warnings.showwarning
    if hasattr(show, "quiet"):
        yield
        return
    with warnings.catch_warnings():

        def show_own(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> Any:
            warning = filename, lineno, str(message)
            if of_the_suite(filename) or (not of_a_package(filename) and warning not in _shown):
                _shown.add(warning)
                show(message, category, filename, lineno, file, line)

        if any(action == "error" for action, *_ in warnings.filters):
            warnings.simplefilter("default")  # of others' packages no warning is an error
        show_own.quiet = True  # type: ignore[attr-defined]
        warnings.showwarning = show_own
        yield


def of_the_suite(filename: str) -> bool:
    """Whether a file is one of this package."""
    return _is_in(filename, _SUITE)


def of_a_package(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package, and to no user."""
    return filename.startswith("<frozen") or any(_is_in(filename, root) for root in _PACKAGES)


def _is_in(filename: str, folder: Path) -> bool:
    path = Path(filename)
    return path.is_relative_to(folder) or path.resolve().is_relative_to(folder.resolve())
