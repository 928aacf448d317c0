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
    with refuses(*named, kind=kind) as caught:
        yield caught
    assert caught.value.key == str(at)
    assert str(caught.value).startswith((f"{at}: ", f"{at} = "))


@contextmanager
def refuses(
    *named: object, kind: type[VclRadialError] = UserError
) -> Iterator[pytest.ExceptionInfo[VclRadialError]]:
    """An error of just this class, which may have no key; its one line is as those of `fails`.

    Args:
        named: what the message names: the key or name at fault, its value, the option of the fix.
        kind: the class.
    """
    with pytest.raises(VclRadialError) as caught:
        yield caught
    message = str(caught.value)
    assert type(caught.value) is kind
    assert "\n" not in message
    assert not message.endswith(".")
    for name in named:
        assert str(name) in message, message


def data_fails(at: object, *named: object):
    """`fails`, of files and their contents."""
    return fails(at, *named, kind=DataError)
