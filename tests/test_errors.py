"""Errors name what is at fault, in their message and by a key that programs and tests can read."""

import pickle

import pytest

from vcl_radial.errors import DataError, Diverged, UserError, bad_value
from vcl_radial.runs.settings import Settings, validated


@pytest.mark.parametrize("kind", [UserError, DataError, Diverged])
def test_the_message_begins_with_what_is_at_fault(kind):
    error = kind("has no column 'age'; add it", at="flats.csv")
    assert str(error) == "flats.csv: has no column 'age'; add it"
    assert error.key == "flats.csv"
    assert kind("nothing has a name here").key is None


def test_the_error_of_a_setting_shows_key_and_value():
    error = bad_value("posterior", "radail", "is not known: choose from gaussian, radial")
    assert str(error) == "posterior = 'radail' is not known: choose from gaussian, radial"
    assert error.key == "posterior"


@pytest.mark.parametrize("table", [{"epoch": 1}, {}, {"epochs": "one"}])
def test_the_error_of_a_table_has_the_key_at_fault(table):
    class Table(Settings):
        epochs: int

    with pytest.raises(UserError) as caught:
        validated(Table, table, "mine.toml")
    assert caught.value.key == next(iter(table), "epochs")
    assert str(caught.value).startswith("mine.toml: ")


def test_the_key_of_an_error_reaches_another_process():
    for error in (
        DataError("is damaged", at="x.csv"),
        bad_value("rank", 0, "is too low"),
    ):
        received = pickle.loads(pickle.dumps(error))
        assert type(received) is type(error)
        assert (str(received), received.key) == (str(error), error.key)
