"""Errors for users: one line that names the file or key, and the fix."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class VclRadialError(Exception):
    """A failure that is reported as one line, without a traceback.

    Args:
        fault: the fault and its fix.
        at: the file, key or option at fault, such as a path; the message begins with it.

    Attributes:
        key: the text of `at`, or the setting of `bad_value`; None where a message names neither.
    """

    def __init__(self, fault: str, at: object = None) -> None:
        self.key = None if at is None else str(at)
        super().__init__(fault if at is None else f"{at}: {fault}")


class UserError(VclRadialError):
    """A fault that the user can fix: a file, a key, a value, an option."""


class DataError(UserError):
    """A data file is missing, damaged or of the wrong kind."""


class Diverged(VclRadialError):
    """The loss of a run stopped being a finite number."""


def bad_value(key: str, value: object, fault: str) -> UserError:
    """The error for a setting: `key = value fault`."""
    error = UserError(f"{key} = {value!r} {fault}")
    error.key = key
    return error


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that a user may have meant."""
    return get_close_matches(name, list(known), 1, cutoff=0.0)[0]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error reports a lack of memory; PyTorch's CPU allocator has no class for it."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or "DefaultCPUAllocator" in str(error)


def visible(text: str, kept: str = "") -> str:
    """Replace the control characters of a text by their codes.

    Args:
        text: a name or a message, which may come from outside.
        kept: control characters that stay, such as line feeds.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


def visible_lines(text: str) -> str:
    """Replace control characters as `visible` does, but keep line feeds and tabs."""
    return "\n".join(visible(line, "\t") for line in text.split("\n"))
