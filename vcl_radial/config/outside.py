"""Classes and functions from outside the suite, which settings name as `package.module:name`.

A file of the user's may be named by its path instead: `folder/file.py:name`.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib.machinery import PathFinder
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeGuard

from vcl_radial.errors import DataError, UserError, VclRadialError
from vcl_radial.files.reading import read_bytes
from vcl_radial.system.quiet import quiet

_settings_folders: list[str] = []


class Untrusted(DataError):
    """A file that is only read names code, which nobody has consented to import."""


class _Consent:
    given = False
    file: Path | None = None
    """The file that is read; None where the user names modules."""


@contextmanager
def consent(given: bool) -> Iterator[None]:
    """Inside, files that are only read may name modules for import, if the user agrees."""
    before, _Consent.given = _Consent.given, given
    try:
        yield
    finally:
        _Consent.given = before


@contextmanager
def named_by(file: Path) -> Iterator[None]:
    """Inside, modules are named by a file that somebody else may have written: none is imported.

    What the command itself has named before is imported already.
    """
    before, _Consent.file = _Consent.file, file
    try:
        yield
    finally:
        _Consent.file = before


def name_of(key: str, value: Callable[..., Any]) -> str:
    """The `package.module:name` by which `find` finds a class or function again.

    Args:
        key: what it is given for, to name in an error.
        value: the class or function.

    Raises:
        UserError: it is none, or not at the top of its module.
    """
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))
    if getattr(sys.modules.get(module), name, None) is not value:
        raise UserError(
            f"{key}: {name} is no class at the top of a module: define it there, outside of any "
            "function, and pass the class as it is now"
        )
    return f"{module}:{name}"


def add_search_path(settings: Path) -> None:
    """Seek the modules that a file of settings names in its own folder too, after all others."""
    folder = str(settings.parent.resolve())
    if folder not in _settings_folders and _Consent.file is None:
        _settings_folders.append(folder)


def is_named(value: object) -> TypeGuard[str]:
    """Whether a value of settings is `package.module:name`."""
    return isinstance(value, str) and ":" in value


def find(key: str, name: str, target: str | None = None) -> Any:
    """What settings name by `key = "package.module:name"`.

    Args:
        key: of the settings, for what is said.
        name: what the user wrote there.
        target: `package.module:name`, where the name stands for that.

    Raises:
        UserError: the module cannot be imported, or has nothing of that name, or two folders have
            a file of its name, of which Python would take the first for both.
        Untrusted: within `named_by`, without consent.
    """
    module_name, in_module = _sought(key, name, target)
    try:
        with quiet():  # of what it imports
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way
        raise _not_imported(key, name, module_name, error) from error
    found = getattr(module, in_module, None)
    if found is None:
        raise _has_no(key, name, module_name, in_module, dir(module))
    return found


def _sought(key: str, name: str, target: str | None) -> tuple[str, str]:
    """Module and name within it, where `sys.path` now ends with the folders of a user's files.

    Worker processes seek there as well, since they are given `sys.path`.

    Raises:
        UserError: two folders have a file of its name, or there is no file at the path.
        Untrusted: within `named_by`, without consent.
    """
    module_name, _, in_module = (target or name).partition(":")
    if target is not None:
        return module_name, in_module
    if _Consent.file is not None and not _Consent.given:
        raise Untrusted(
            f"{_Consent.file}: names code, {key} = {name!r}: look at that module, and give "
            "`report --trust` if it may be imported"
        )
    if module_name.endswith(".py"):
        module_name = _module_of(Path(module_name), key, name)
    top = module_name.partition(".")[0]
    there = [folder for folder in _folders() if Path(folder, f"{top}.py").is_file()]
    # Last, so that no other file there hides a module of Python's or of a package.
    sys.path += [folder for folder in _folders() if folder not in sys.path]
    spec = PathFinder.find_spec(top) if there else None
    if spec is not None and spec.origin is not None:
        there.append(str(Path(spec.origin).parent))
    if len(different := {Path(folder).resolve(): folder for folder in there}) > 1:
        folders = " and in ".join(different.values())
        raise UserError(f"{key} = {name!r}: {top}.py is in {folders}: rename one")
    return module_name, in_module


def _module_of(file: Path, key: str, name: str) -> str:
    """The module of a file at a path from the folder at work, or from that of the settings."""
    # A worker knows the folders of settings from `sys.path` alone.
    folders = (*_folders(), *sys.path)
    path = next((path for f in folders if (path := Path(f, file)).is_file()), None)
    if path is None:
        places = f" in {' or in '.join(_folders())}" if not file.is_absolute() else ""
        raise UserError(f"{key} = {name!r}: there is no file {file}{places}")
    add_search_path(path)
    return path.stem


def _folders() -> list[str]:
    """The current folder and those of settings, without duplicates."""
    return list(dict.fromkeys([str(Path.cwd()), *_settings_folders]))


def _not_imported(key: str, name: str, module_name: str, error: BaseException) -> UserError:
    return UserError(
        f"{key} = {name!r}: cannot import {module_name!r}: {_why_not(error)}"
        + _where_sought(module_name, error)
    )


def _has_no(
    key: str, name: str, module_name: str, in_module: str, names: Iterable[str]
) -> UserError:
    nearest = get_close_matches(in_module, names, 1)
    meant = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return UserError(f"{key} = {name!r}: {module_name!r} has no {in_module!r}{meant}")


def call(key: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """What the function gives that settings name by `key = "package.module:function"`.

    Raises:
        UserError: it is not found, cannot be called, or fails; with the place in its file.
    """
    function = find(key, name)
    if not callable(function):
        raise UserError(f"{key} = {name!r} is no function, but {type(function).__name__}")
    try:
        return function(*args, **kwargs)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # a user's function may fail in any way
        raise UserError(f"{key} = {name!r}: {format_error(error, function)}") from error


def check_overrides(cls: type[Any]) -> None:
    """See that what a user's class overrides takes all arguments that the suite may call it with.

    Raises:
        UserError: a method does not; names it and the signature that it needs.
    """
    base = next(owner for owner in cls.__mro__ if owner.__module__.startswith("vcl_radial."))
    for owner in takewhile(lambda owner: owner is not base, cls.__mro__):
        for name, method in vars(owner).items():
            overridden = inspect.getattr_static(base, name, None)
            if (
                inspect.isfunction(method)
                and inspect.isfunction(overridden)
                and not name.startswith("__")
                and not _takes_calls_of(method, overridden)
            ):
                code = inspect.unwrap(method).__code__
                signature = inspect.signature(overridden)
                plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
                needed = signature.replace(parameters=plain, return_annotation=signature.empty)
                raise UserError(
                    f"{method.__qualname__}{inspect.signature(method)} "
                    f"({Path(code.co_filename).name}, line {code.co_firstlineno}) does not take "
                    f"all arguments of the method that it overrides: define it as {name}{needed}"
                )


def _takes_calls_of(method: Callable[..., Any], overridden: Callable[..., Any]) -> bool:
    """Whether a method takes all arguments that another names, by position or by name."""
    this, *parameters = inspect.signature(overridden).parameters.values()
    by_name = {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}
    others = {p.name: p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    for positions, names in ((others.values(), by_name), ((), others | by_name)):
        with suppress(TypeError):
            inspect.signature(method).bind(this, *positions, **names)
            return True
    return False


def checksum(*found: Callable[..., Any]) -> str:
    """A checksum of the files that classes and functions are written in.

    Files of classes that a class is derived from count, but for those of the suite, Avalanche and
    Python. What they import does not.

    Raises:
        UserError: a file cannot be read.
    """
    content = hashlib.sha256()
    for module in sorted({module for each in found for module in _modules(each)}):
        root = module.partition(".")[0]
        file = getattr(sys.modules.get(module), "__file__", None)
        if module == "__main__" and file is None:
            content.update(_in_notebook(found).encode())
        if file is None or root in {"vcl_radial", "avalanche", *sys.stdlib_module_names}:
            continue
        try:
            content.update(read_bytes(Path(file)))
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    return content.hexdigest()[:16]


def _in_notebook(found: Sequence[Callable[..., Any]]) -> str:
    """The code of classes and functions that the cells of a notebook define.

    Raises:
        UserError: Python does not keep it, as in an interactive session.
    """
    of_notebook = [
        value
        for whole in found
        for value in getattr(whole, "__mro__", (whole,))
        if value.__module__ == "__main__"
    ]
    lines: list[str] = []
    for value in of_notebook:
        members = vars(value) if inspect.isclass(value) else {"": value}
        for key, member in members.items():
            function = getattr(member, "fget", getattr(member, "__func__", member))
            if inspect.isfunction(function):
                try:
                    lines.append(inspect.getsource(function))
                except OSError:
                    raise UserError(
                        f"{value.__name__}: Python keeps no source of it in this session, and "
                        "results are filed under it: define it in a file or in a notebook"
                    ) from None
            elif isinstance(member, (int, float, str, tuple)) and not key.startswith("__"):
                lines.append(f"{value.__name__}.{key} = {member!r}\n")
    return "".join(lines)


def format_error(error: BaseException, *found: Callable[..., Any]) -> str:
    """An exception in one line; one that is not the suite's own with where it came from.

    Args:
        error: what was raised.
        found: classes and functions at work. The place named is the innermost one in the file of
            one of them, or of a class of the user's that one is derived from; else the innermost.
    """
    text = " ".join(str(error).split())
    if isinstance(error, VclRadialError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    own = {file for each in found for file in _files(each)}
    place = next((f for f in reversed(frames) if f.filename in own), frames[-1] if frames else None)
    at = f" ({Path(place.filename).name}, line {place.lineno}, in {place.name})" if place else ""
    return f"{type(error).__name__}: {text}{at}"


def _modules(found: Callable[..., Any]) -> set[str]:
    """Of a function; of a class and all that it is derived from."""
    return {each.__module__ for each in getattr(found, "__mro__", (found,))}


def _files(found: Callable[..., Any]) -> set[str | None]:
    """The files of a class and of the classes between it and the suite, or of a function."""
    suite = ("vcl_radial.", "avalanche.")
    between = {module for module in _modules(found) if not module.startswith(suite)}
    modules = (sys.modules.get(name) for name in {found.__module__, *between})
    return {getattr(module, "__file__", None) for module in modules}


def _why_not(error: BaseException) -> str:
    """Why a module cannot be imported, with the line that it failed at."""
    text = " ".join(str(error).split())
    # What lies before is the machinery of imports; a syntax error names file and line itself.
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    if isinstance(error, SyntaxError) or len(frames) < 2:
        return text
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
    return f"{text} ({type(error).__name__} in {place})"


def _where_sought(module_name: str, error: BaseException) -> str:
    """What to do where a user's module itself is not found."""
    if not isinstance(error, ModuleNotFoundError) or not module_name.startswith(error.name or "/"):
        return ""
    return (
        "; put its file beside the .toml, or run the command in the folder of its file, or name "
        "that folder in PYTHONPATH"
    )
