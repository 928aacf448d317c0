"""A method's faults in one line, with the place in its own file."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from vcl_radial.errors import VclRadialError


def in_words(error: BaseException, *classes: type[Any]) -> str:
    """An exception in one line; one that is not the suite's own with where it came from.

    Args:
        error: what was raised.
        classes: those at work. The place named is the innermost one in the file of one of them, or
            of a class of the user's that it is derived from; else the innermost of all.
    """
    text = " ".join(str(error).split())
    if isinstance(error, VclRadialError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    own = {file for each in classes for file in _files(each)}
    place = next((f for f in reversed(frames) if f.filename in own), frames[-1] if frames else None)
    at = f" ({Path(place.filename).name}, line {place.lineno}, in {place.name})" if place else ""
    return f"{type(error).__name__}: {text}{at}"


def _files(method: type[Any]) -> set[str | None]:
    """The files of a class and of the classes between it and the suite."""
    suite = ("vcl_radial.", "avalanche.")
    outside = {each.__module__ for each in method.__mro__ if not each.__module__.startswith(suite)}
    modules = (sys.modules.get(name) for name in {method.__module__, *outside})
    return {getattr(module, "__file__", None) for module in modules}
