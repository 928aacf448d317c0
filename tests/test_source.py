"""Modules and classes read from their files, as an import would find them."""

import sys

import pytest

from vcl_radial.source import Absent, NotReadable, definition, find_class, lineage, module_file

BASES = """
import abc
import typing
from typing import Generic, TypeVar
T = TypeVar("T")
class Root(abc.ABC): ...
class Left(Root, Generic[T]): ...
class Right(Root): ...
"""
DERIVED = """
from bases_in_a_file import Left, Right as Other
import bases_in_a_file as bases
try:
    class Diamond(Left[int], Other): ...
except TypeError:
    pass
class Dotted(bases.Left): ...
class Around(Unknown): ...
def function(): ...
"""


@pytest.fixture(autouse=True)
def _modules(user_module):
    user_module("bases_in_a_file", BASES)
    user_module("derived_in_a_file", DERIVED)
    user_module("names_itself", "globals()['Mine'] = object\n")
    user_module("shows_others", "from bases_in_a_file import *\n")
    yield
    assert not {"bases_in_a_file", "derived_in_a_file", "names_itself"} & set(sys.modules)


def names(module, name):
    return [found.name for found in lineage(find_class(module, name))]


def test_the_lineage_of_a_class_is_in_the_order_in_which_python_asks():
    assert names("derived_in_a_file", "Diamond") == [
        *("Diamond", "Left", "Right", "Root", "ABC", "Generic")
    ]
    assert names("derived_in_a_file", "Dotted") == ["Dotted", "Left", "Root", "ABC", "Generic"]


def test_a_base_that_is_nowhere_in_the_file_is_not_guessed():
    with pytest.raises(NotReadable):
        names("derived_in_a_file", "Around")


@pytest.mark.parametrize("module", ["names_itself", "shows_others"])
def test_a_module_that_gives_itself_names_is_left_to_an_import(module):
    with pytest.raises(NotReadable):
        definition(module, "Mine")


def test_what_is_absent_is_named_with_the_names_that_are_there():
    with pytest.raises(Absent) as absent:
        definition("derived_in_a_file", "Diamant")
    assert "Diamond" in absent.value.near
    with pytest.raises(Absent, match=r"^No module named 'vcl_radial.nowhere'$"):
        module_file("vcl_radial.nowhere.at_all")


def test_an_inner_module_is_located_without_importing_what_is_above(tmp_path, monkeypatch):
    inner = tmp_path / "outer_in_a_folder" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (inner / "__init__.py").write_text("from .methods import Mine\n")
    (inner / "methods.py").write_text("from ..inner import other\nclass Mine(other.Base): ...\n")
    (inner / "other.py").write_text("class Base: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = lineage(find_class("outer_in_a_folder.inner", "Mine"))
    assert [(source.module.rpartition(".")[2], source.name) for source in found] == [
        *(("methods", "Mine"), ("other", "Base"))
    ]
