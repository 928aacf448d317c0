import subprocess
import sys
import warnings
from contextlib import nullcontext

import avalanche
import pytest

import vcl_radial
from vcl_radial.config.outside import find
from vcl_radial.system import quiet

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
            warnings.warn_explicit("ours", UserWarning, vcl_radial.__file__, 1)
    assert len(recwarn) == 2


@pytest.mark.processes
def test_a_run_of_a_users_class_is_known_without_the_warnings_of_avalanche(tmp_path):
    (tmp_path / "own.py").write_text("from vcl_radial.methods.l2 import L2\n")
    (tmp_path / "own.toml").write_text('strategy = "own:L2"\nposterior = "none"\n')
    program = (
        "from vcl_radial.runs import planning;"
        "run, = planning.plan('split-digits-multi-head', ['own.toml'], [0]);"
        "print(run.on_data(None).code)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert len(done.stdout) > len("None\n")
