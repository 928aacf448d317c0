"""What went wrong, in the user's words: one line that names the file or key and the mend."""

from __future__ import annotations


class VclRadialError(Exception):
    """A failure that is reported as one line, without a traceback."""


class UserError(VclRadialError):
    """Something the user can mend: a file, a key, a value, an option."""


class DataError(UserError):
    """A data file is missing, damaged or not what it should be."""


class Diverged(VclRadialError):
    """The loss of a run stopped being a finite number."""
