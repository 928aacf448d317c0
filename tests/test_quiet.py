import sys
import warnings
from contextlib import nullcontext

import avalanche
import pytest

from vcl_radial import quiet
from vcl_radial.outside import find

WARNS = """
import sys
import warnings

with warnings.catch_warnings():
    warnings.warn_explicit("no solver", UserWarning, {package!r}, 1)
warnings.warn("mine")


def use():
    warnings.warn("mine in use")
"""


@pytest.fixture
def warns(tmp_path, monkeypatch):
    """A user's module that warns itself, and imports what warns."""
    (tmp_path / "warns_a_lot.py").write_text(WARNS.format(package=avalanche.__file__))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(quiet, "_shown", set())
    yield lambda: find("strategy", "warns_a_lot:use")
    sys.modules.pop("warns_a_lot", None)


@pytest.mark.parametrize("within", [nullcontext, quiet.quiet])
def test_a_users_class_is_found_without_the_warnings_of_what_it_imports(within, warns, recwarn):
    warnings.simplefilter("always")
    with within():
        warns()
    assert [str(warning.message) for warning in recwarn] == ["mine"]


def test_a_place_of_the_users_warns_once_of_one_thing(warns, recwarn):
    warnings.simplefilter("always")
    use = warns()
    for _ in range(3):
        with quiet.quiet():
            use()
    assert [str(warning.message) for warning in recwarn] == ["mine", "mine in use"]


def test_a_warning_of_the_suite_is_shown_each_time(recwarn):
    warnings.simplefilter("always")
    for _ in range(2):
        with quiet.quiet():
            warnings.warn_explicit("ours", UserWarning, quiet.__file__, 1)
    assert len(recwarn) == 2
