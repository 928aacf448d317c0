"""Errors by what is at fault; what holds of the wording of all of them is checked here."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vcl_radial.errors import DataError, UserError, VclRadialError


@contextmanager
def fails(
    at: object, *named: object, kind: type[VclRadialError] = UserError
) -> Iterator[pytest.ExceptionInfo[VclRadialError]]:
    """An error of just this class, at this key or path.

    Its message is one line that begins with what is at fault, and does not end like a sentence.

    Args:
        at: the setting, the path or the name at fault.
        named: what the message names besides, such as a row, a column, or the option of the fix.
        kind: the class.
    """
    with pytest.raises(VclRadialError) as caught:
        yield caught
    error, message = caught.value, str(caught.value)
    assert type(error) is kind
    assert error.key == str(at)
    assert message.startswith((f"{at}: ", f"{at} = "))
    assert "\n" not in message
    assert not message.endswith(".")
    for word in named:
        assert str(word) in message, message


def data_fails(at: object, *named: object):
    """`fails`, of files and their contents."""
    return fails(at, *named, kind=DataError)
