"""What installed packages offer: found, listed, checked and run by its name."""

import sys
from functools import partial
from pathlib import Path

import pytest
from failing import refuses

from vcl_radial.config.installed import offer, offers
from vcl_radial.conformance import recipe_for
from vcl_radial.methods.registry import find_method
from vcl_radial.runs import catalogue

CODE = """
from vcl_radial.integrations.avalanche import ContinualStrategy

class Theirs(ContinualStrategy):
    pass
"""
RECIPE = 'description = "a method of theirs"\nstrategy = "theirs"\nposterior = "none"\n'


@pytest.fixture
def package(install):
    """The package `their_package` with a method, and where its recipe would lie."""
    folder = install("their-package", theirs="their_package.methods:Theirs") / "their_package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "methods.py").write_text(CODE)
    yield folder
    for name in ("their_package", "their_package.methods"):
        sys.modules.pop(name, None)


def test_a_package_offers_its_method_and_the_recipe_beside_it(package):
    assert offer("theirs").recipe is None
    recipe = package / "theirs.toml"
    recipe.write_text(RECIPE)
    (only,) = offers()
    assert only == offer("theirs")
    assert (only.target, only.package) == ("their_package.methods:Theirs", "their-package 1.0")
    assert only.recipe == recipe
    assert offer("others") is None
    assert "their_package" not in sys.modules


def test_a_packages_recipe_is_of_the_method_that_it_is_offered_for(package):
    (package / "theirs.toml").write_text("posterior = 'none'\n")
    assert catalogue.load("method", "theirs").recipe == {"posterior": "none", "strategy": "theirs"}
    (package / "theirs.toml").write_text("strategy = 'their_package.methods:Theirs'\n")
    assert catalogue.load("method", "theirs").recipe == {"strategy": "their_package.methods:Theirs"}


@pytest.mark.parametrize(
    ("target", "file", "recipe"),
    [
        ("one_module:Mine", "one_module.py", "mine.toml"),
        ("a_package:Mine", "a_package/__init__.py", "a_package/mine.toml"),
        ("a_package.inner:Mine", "a_package/inner/__init__.py", "a_package/inner/mine.toml"),
        ("a_package.inner:Mine", "a_package/inner/__init__.py", "a_package/mine.toml"),
        ("a_package.a.b:Mine", "a_package/a/b.py", "a_package/a/mine.toml"),
    ],
)
def test_a_recipe_lies_beside_its_module_or_in_it(target, file, recipe, install):
    folder = install("another", mine=target)
    for path in (folder / file, folder / recipe):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    top = folder / target.partition(":")[0].partition(".")[0]
    if top.is_dir():
        (top / "__init__.py").touch()
    assert offer("mine").recipe == folder / recipe


@pytest.mark.parametrize("target", ["no_such_package:Mine", "no_such.inner:Mine", ":", ""])
def test_a_module_that_is_not_there_has_no_recipe(target, install):
    install("another", mine=target)
    assert all(point.recipe is None for point in offers())


def test_the_list_shows_them_with_their_package(package, install, command):
    (package / "theirs.toml").write_text(RECIPE)
    install("bare", bare="no_such_module:Bare")
    code, out, err = command("list")
    assert (code, err) == (0, [])
    assert out.split("Methods of installed packages:\n")[1].splitlines()[:2] == [
        '  bare    a strategy without a recipe: write one with strategy = "bare" (bare 1.0)',
        "  theirs  a method of theirs (their-package 1.0)",
    ]


def test_without_any_the_list_has_no_such_heading(command):
    assert "installed" not in command("list")[1]


def test_a_damaged_recipe_of_theirs_does_not_keep_the_list_from_the_others(package, command):
    (package / "theirs.toml").write_text("strategy =\n")
    code, out, _ = command("list")
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("  theirs ")]
    assert "theirs.toml: not valid TOML" in line


def test_theirs_is_run_by_its_name(package, command, no_report):
    (package / "theirs.toml").write_text(RECIPE)
    tiny = ["--set", "epochs=1", "hidden=[8]", "stream.tasks=2"]
    run = ["run", "split-digits-multi-head", "--jobs", "1", "--device", "cpu", "--method"]
    code, out, err = command(*run, "theirs", *tiny)
    assert (code, err) == (0, [])
    assert "theirs seed 0" in out
    assert len(list(Path("runs").rglob("theirs/seed-0-*/done"))) == 1
    assert recipe_for("theirs").strategy == "theirs"  # which `check` takes


def test_a_strategy_without_a_recipe_is_named_with_what_to_write(package):
    with refuses("'theirs'", "their-package 1.0", "strategy = 'theirs'", ".toml"):
        catalogue.load("method", "theirs")


def test_the_nearest_name_may_be_theirs(package):
    (package / "theirs.toml").write_text(RECIPE)
    with refuses("'their'", "nearest is 'theirs'"):
        catalogue.load("method", "their")


def test_the_suites_own_names_stay_its_own(install, command):
    """Those of its strategies too: a recipe with that name would mean the suite's."""
    folder = install("taking", naive="their_naive:Naive", vcl="their_naive:VCL")
    (folder / "their_naive.py").touch()
    for name in ("naive", "vcl"):
        (folder / f"{name}.toml").write_text(RECIPE)
    assert catalogue.load("method", "naive").path.parent == catalogue.folder("method")
    assert find_method("vcl").__name__ == "VCL"
    with refuses("unknown method 'vcl'"):
        catalogue.load("method", "vcl")
    assert catalogue.installed() == []
    assert "taking" not in command("list")[1]


def test_a_name_that_two_packages_offer_has_to_be_made_plain(install):
    install("first", mine="first_module:Mine")
    install("second", mine="second_module:Mine")
    for find in (partial(catalogue.load, "method"), find_method):
        with refuses("'first_module:Mine' (first 1.0)", "'second_module:Mine' (second 1.0)"):
            find("mine")
