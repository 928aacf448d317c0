"""The rooms of the package, as CONTRIBUTING.md lists them: a room imports only rooms above it."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "vcl_radial"
MODULES = "modules"
"""The room of the modules that lie in no folder."""


def rooms():
    """The folders of the package in the order of the list."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = text.partition("    vcl_radial/\n")[2].partition("\n    benchmarks/")[0]
    return re.findall(r"^ {6}(\w+)/ ", listed, re.MULTILINE)


def room_of(path):
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else MODULES


def imports(path):
    """The names that a file imports, without those that only annotations use."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [*ast.walk(tree)]
    typed = [n for n in nodes if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    unused = {part for node in typed for part in ast.walk(node)}
    for node in nodes:
        if node in unused:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: name the package, not a dot"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_rooms(path):
    """The other rooms that a file imports from."""
    names = [name.split(".") for name in imports(path)]
    known = set(rooms())
    of_suite = [name for name in names if name[0] == "vcl_radial" and name[1:]]
    return {name[1] if name[1] in known else MODULES for name in of_suite} - {room_of(path)}


def test_every_folder_of_the_package_is_in_the_list_once():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(rooms()) == sorted(folders)


# Of a list in which every import points up, no rooms import each other in a circle.
@pytest.mark.parametrize("room", [MODULES, *rooms()])
def test_a_room_imports_only_rooms_above_it_in_the_list(room):
    order = [MODULES, *rooms()]
    files = PACKAGE.glob("*.py") if room == MODULES else (PACKAGE / room).rglob("*.py")
    wrong = {
        f"{file.relative_to(ROOT)} imports {other}"
        for file in files
        if file.name not in ("__main__.py", "__init__.py") or file.parent != PACKAGE  # the doors
        for other in imported_rooms(file)
        if order.index(other) > order.index(room)
    }
    assert not wrong


@pytest.mark.parametrize("package", ["data.fundus", "data.streams"])
def test_every_name_that_a_package_imports_when_it_is_first_used_is_there(package):
    module = import_module(f"vcl_radial.{package}")
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = module.nothing


def test_no_track_imports_another_one():
    folder = PACKAGE / "tracks"
    tracks = {path.parent.name for path in folder.glob("*/__init__.py")}
    for track in tracks:
        for file in (folder / track).rglob("*.py"):
            parts = [name.split(".") for name in imports(file)]
            imported = {part[2] for part in parts if part[1:2] == ["tracks"] and part[2:]}
            assert not imported & (tracks - {track}), file
