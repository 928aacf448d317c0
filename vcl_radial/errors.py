"""What went wrong, in the user's words: one line that names the file or key and the mend."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class VclRadialError(Exception):
    """A failure that is reported as one line, without a traceback."""


class UserError(VclRadialError):
    """Something the user can mend: a file, a key, a value, an option."""


class DataError(UserError):
    """A data file is missing, damaged or not what it should be."""


class Diverged(VclRadialError):
    """The loss of a run stopped being a finite number."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that a user may have meant."""
    return get_close_matches(name, list(known), 1, cutoff=0.0)[0]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it says that memory ran out; PyTorch's allocator on a CPU has no class for that."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or "DefaultCPUAllocator" in str(error)


def visible(text: str) -> str:
    """A text on one line, every character of it to be seen: a control character as its code."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
