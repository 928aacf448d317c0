import sys

import pytest

from vcl_radial.errors import UserError
from vcl_radial.strategies import ContinualStrategy
from vcl_radial.strategies.registry import built_in, find_strategy


def test_every_method_is_found_by_the_name_of_its_file():
    assert {"vcl", "naive", "joint"} <= set(built_in())
    for name in built_in():
        found = find_strategy(name)
        assert issubclass(found, ContinualStrategy)
        assert found.__module__ == f"vcl_radial.strategies.{name}"


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    (tmp_path / "their_methods.py").write_text(
        "from vcl_radial.strategies import ContinualStrategy\n"
        "class Mine(ContinualStrategy): pass\n"
        "NOT_A_CLASS = 3\n"
        "class Other: pass\n"
    )
    (tmp_path / "their_broken_methods.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("their_methods", None)


def test_a_users_own_class_is_found(user_module):
    assert find_strategy("their_methods:Mine").__name__ == "Mine"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vlc", "nearest is 'vcl'"),
        ("base", "is not known"),
        ("their_methods:Yours", "no class 'Yours'"),
        ("their_methods:Other", "not a vcl_radial.strategies.ContinualStrategy"),
        ("their_methods:NOT_A_CLASS", "not a vcl_radial.strategies.ContinualStrategy"),
        ("their_broken_methods:Mine", "a_package_that_is_not_there"),
        ("no_such_package:Mine", "cannot import 'no_such_package'"),
        ("vcl_radial.strategies.vcl:", "no class ''"),
    ],
)
def test_what_is_wrong_with_a_strategy_is_named(name, words, user_module):
    with pytest.raises(UserError, match=words):
        find_strategy(name)
