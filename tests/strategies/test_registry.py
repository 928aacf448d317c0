import inspect
import sys

import pytest
from failing import refuses
from learners import strategy_class

from vcl_radial.config import outside
from vcl_radial.integrations.avalanche.base import TRAITS
from vcl_radial.methods.base import Method
from vcl_radial.methods.registry import built_in, built_in_class, find_method, installed, names


def test_every_method_is_found_by_the_name_of_its_file():
    assert {"vcl", "naive", "joint"} <= set(built_in())
    for name in built_in():
        method = find_method(name)
        assert issubclass(method, Method)
        assert method.__module__ == f"vcl_radial.methods.{name}"


def test_every_method_is_an_avalanche_strategy():
    for name in built_in():
        strategy, method = strategy_class(name), built_in_class(name)
        assert strategy.__name__ == method.__name__
        assert strategy.method_class is method
        assert all(getattr(strategy, trait) == getattr(method, trait) for trait in TRAITS)
        assert {"model", "optimizer", "settings"} <= inspect.signature(strategy).parameters.keys()


THEIRS = """
from vcl_radial.integrations.avalanche import ContinualStrategy
class Mine(ContinualStrategy): pass
NOT_A_CLASS = 3
class Other: pass
"""


@pytest.fixture(autouse=True)
def _their_methods(user_module):
    user_module("their_methods", THEIRS)
    user_module("their_broken_methods", "import a_package_that_is_not_there")
    yield
    sys.modules.pop("their_methods", None)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("vlc", ["nearest", "'vcl'"]),
        ("base", ["not known"]),
        ("their_methods:Yours", ["'their_methods'", "'Yours'"]),
        ("their_methods:Other", ["vcl_radial.methods.base.Method"]),
        ("their_methods:NOT_A_CLASS", ["vcl_radial.methods.base.Method"]),
        ("their_broken_methods:Mine", ["'a_package_that_is_not_there'"]),
        ("no_such_package:Mine", ["'no_such_package'"]),
        ("vcl_radial.integrations.avalanche.methods:", ["''"]),
        ("folder/own.py:Own", ["no file folder/own.py"]),
        ("/nowhere/own.py:Own", ["no file /nowhere/own.py"]),
    ],
)
def test_what_is_wrong_with_a_strategy_is_named(name, named):
    with refuses(f"strategy = '{name}'", *named):
        find_method(name)


def test_a_method_of_an_installed_package_is_found_by_the_name_of_its_entry_point(install):
    assert installed() == []
    install("theirs", mine="their_methods:Mine")
    assert installed() == ["mine"]
    assert names() == sorted([*built_in(), "mine"])
    assert find_method("mine") is find_method("their_methods:Mine")
    with refuses("strategy = 'mime'", "nearest is 'mine'", "installed: mine"):
        find_method("mime")


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("no_such_package:Mine", "'no_such_package'"),
        ("their_methods:Other", "vcl_radial.methods.base.Method"),
        ("their_methods", "'their_methods'"),
    ],
)
def test_what_is_wrong_with_an_entry_point_is_named(target, named, install):
    install("theirs", mine=target)
    with refuses("strategy = 'mine'", named):
        find_method("mine")


def test_a_runs_code_is_known_by_the_files_of_its_class(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_base.py").write_text(
        "from vcl_radial.integrations.avalanche import ContinualStrategy\n"
        "class Base(ContinualStrategy): ...\n"
    )
    text = "from own_base import Base\nclass Own(Base): ...\n"
    (tmp_path / "own_method.py").write_text(text)
    method = find_method("own_method:Own")
    first = outside.checksum(method)
    assert first == outside.checksum(method)
    checksums = {first}
    for name in ("own_base.py", "own_method.py"):
        with (tmp_path / name).open("a") as file:
            file.write("# edited\n")
        checksums.add(outside.checksum(method))
    assert len(checksums) == 3


def test_a_file_may_be_named_by_its_path_from_the_folder_at_work_or_the_settings(
    tmp_path, monkeypatch
):
    (tmp_path / "a").mkdir()
    text = (
        "from vcl_radial.integrations.avalanche import ContinualStrategy\n"
        "class Own(ContinualStrategy): ...\n"
    )
    for name in ("by_path", "by_folder", "by_whole_path"):
        (tmp_path / "a" / f"{name}.py").write_text(text)
    whole = tmp_path / "a" / "by_whole_path.py"
    assert find_method(f"{whole}:Own").__module__ == "by_whole_path"
    monkeypatch.chdir(tmp_path)
    assert find_method("a/by_folder.py:Own").__module__ == "by_folder"
    monkeypatch.chdir(tmp_path.parent)
    outside.add_search_path(tmp_path / "a" / "own.toml")
    assert find_method("by_path.py:Own").__module__ == "by_path"
    with refuses("'by_path.py:Owm'", "'Owm'"):
        find_method("by_path.py:Owm")


def test_a_module_is_sought_beside_the_settings_that_name_it(tmp_path):
    (tmp_path / "beside_settings.py").write_text(
        "from vcl_radial.integrations.avalanche import ContinualStrategy\n"
        "class Own(ContinualStrategy): ...\n"
    )
    with refuses("'beside_settings:Own'", "beside the"):
        find_method("beside_settings:Own")
    outside.add_search_path(tmp_path / "own.toml")
    assert find_method("beside_settings:Own").__module__ == "beside_settings"
    with refuses("'Owm'", "'Own'"):
        find_method("beside_settings:Owm")


def test_two_modules_of_one_name_beside_two_settings_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "of_one_name.py").write_text("")
        outside.add_search_path(tmp_path / folder / "own.toml")
    with refuses("'of_one_name:Own'", tmp_path / "a", tmp_path / "b"):
        find_method("of_one_name:Own")
