"""Import a user's classes and functions, which settings name as `package.module:name`.

A file may be named by its path instead: `folder/file.py:name`.
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
    """A file that is only read names code, and the user has not agreed to import it."""


class _Consent:
    granted = False
    file: Path | None = None
    """The file that is read; None where the user names modules."""


@contextmanager
def consent(granted: bool) -> Iterator[None]:
    """Decide whether modules that only a file from outside names may be imported inside."""
    before, _Consent.granted = _Consent.granted, granted
    try:
        yield
    finally:
        _Consent.granted = before


@contextmanager
def named_by(file: Path) -> Iterator[None]:
    """Mark modules found inside as named by a file of unknown origin: none is imported.

    Modules that the command itself names have been imported before.
    """
    before, _Consent.file = _Consent.file, file
    try:
        yield
    finally:
        _Consent.file = before


def name_of(key: str, value: Callable[..., Any]) -> str:
    """The name `package.module:name` by which `find` finds a class or function.

    Args:
        key: the key or argument that holds the value, for error messages.
        value: the class or function.

    Raises:
        UserError: the value is neither, or not at the top of its module.
    """
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))
    if getattr(sys.modules.get(module), name, None) is not value:
        raise UserError(
            f"{name} is no class at the top of a module: define it there, outside of any "
            "function, and pass the class as it is now",
            at=key,
        )
    return f"{module}:{name}"


def add_search_path(settings: Path) -> None:
    """Add the settings file's folder to the end of the search path for modules."""
    folder = str(settings.parent.resolve())
    if folder not in _settings_folders and _Consent.file is None:
        _settings_folders.append(folder)


def is_named(value: object) -> TypeGuard[str]:
    """Whether a value of settings has the form `package.module:name`."""
    return isinstance(value, str) and ":" in value


def find(key: str, name: str, target: str | None = None) -> Any:
    """Import the object that settings name by `key = "package.module:name"`.

    Args:
        key: the key of the settings, for error messages.
        name: the user's value of the key.
        target: `package.module:name`, if the value is a short name for it.

    Raises:
        UserError: the module cannot be imported, or has nothing of that name, or two folders have
            a file of its name, so that Python would import the first for both.
        Untrusted: within `named_by`, without consent.
    """
    module_name, in_module = _locate(key, name, target)
    try:
        with quiet():  # the module's imports may warn
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way
        raise _import_error(key, name, module_name, error) from error
    value = getattr(module, in_module, None)
    if value is None:
        raise _missing_name_error(key, name, module_name, in_module, dir(module))
    return value


def _locate(key: str, name: str, target: str | None) -> tuple[str, str]:
    """The module and the name within it; also add the folders of a user's files to `sys.path`.

    Worker processes search there as well, since they get `sys.path`.

    Raises:
        UserError: two folders have a file of the module's name, or there is no file at the path.
        Untrusted: within `named_by`, without consent.
    """
    module_name, _, in_module = (target or name).partition(":")
    if target is not None:
        return module_name, in_module
    if _Consent.file is not None and not _Consent.granted:
        raise Untrusted(
            f"{_Consent.file}: names code, {key} = {name!r}: look at that module, and give "
            "--trust (in Python trust=True) if it may be imported"
        )
    if module_name.endswith(".py"):
        module_name = _module_of(Path(module_name), key, name)
    top = module_name.partition(".")[0]
    holders = [folder for folder in _folders() if Path(folder, f"{top}.py").is_file()]
    # At the end, so that no file there hides a module of Python or of a package.
    sys.path += [folder for folder in _folders() if folder not in sys.path]
    spec = PathFinder.find_spec(top) if holders else None
    if spec is not None and spec.origin is not None:
        holders.append(str(Path(spec.origin).parent))
    if len(different := {Path(folder).resolve(): folder for folder in holders}) > 1:
        folders = " and in ".join(different.values())
        raise UserError(f"{key} = {name!r}: {top}.py is in {folders}: rename one")
    return module_name, in_module


def _module_of(file: Path, key: str, name: str) -> str:
    """The module of a file, by its path relative to the current folder or a settings folder."""
    # A worker knows the settings folders only from `sys.path`.
    folders = (*_folders(), *sys.path)
    path = next((path for f in folders if (path := Path(f, file)).is_file()), None)
    if path is None:
        folders_text = f" in {' or in '.join(_folders())}" if not file.is_absolute() else ""
        raise UserError(f"{key} = {name!r}: there is no file {file}{folders_text}")
    add_search_path(path)
    return path.stem


def _folders() -> list[str]:
    """The current folder and the settings folders, without duplicates."""
    return list(dict.fromkeys([str(Path.cwd()), *_settings_folders]))


def _import_error(key: str, name: str, module_name: str, error: BaseException) -> UserError:
    return UserError(
        f"{key} = {name!r}: cannot import {module_name!r}: {_import_cause(error)}"
        + _search_path_fix(module_name, error)
    )


def _missing_name_error(
    key: str, name: str, module_name: str, in_module: str, names: Iterable[str]
) -> UserError:
    nearest = get_close_matches(in_module, names, 1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return UserError(f"{key} = {name!r}: {module_name!r} has no {in_module!r}{hint}")


def call(key: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call the function that settings name by `key = "package.module:function"`.

    Raises:
        UserError: the function is missing, cannot be called, or fails; the message gives the file
            and line.
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
    """Check that overriding methods of a user's class take all arguments of the suite's calls.

    Raises:
        UserError: a method does not; the message names it and the signature that it needs.
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
    """Whether a method takes all arguments of the overridden method, by position and by name."""
    instance, *parameters = inspect.signature(overridden).parameters.values()
    by_name = {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}
    positional = {p.name: p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    for positions, names in ((positional.values(), by_name), ((), positional | by_name)):
        with suppress(TypeError):
            inspect.signature(method).bind(instance, *positions, **names)
            return True
    return False


def checksum(*objects: Callable[..., Any]) -> str:
    """A checksum of the files that define classes and functions.

    It includes files of base classes, except base classes of the suite, Avalanche and Python. It
    does not include files that they import.

    Raises:
        UserError: a file cannot be read.
    """
    content = hashlib.sha256()
    for module in sorted({module for value in objects for module in _modules(value)}):
        root = module.partition(".")[0]
        file = getattr(sys.modules.get(module), "__file__", None)
        if module == "__main__" and file is None:
            content.update(_notebook_source(objects).encode())
        if file is None or root in {"vcl_radial", "avalanche", *sys.stdlib_module_names}:
            continue
        try:
            content.update(read_bytes(Path(file)))
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}", at=file) from error
    return content.hexdigest()[:16]


def _notebook_source(objects: Sequence[Callable[..., Any]]) -> str:
    """The code of classes and functions that the cells of a notebook define.

    Raises:
        UserError: Python does not keep the code, as in an interactive session.
    """
    local = [
        value
        for derived in objects
        for value in getattr(derived, "__mro__", (derived,))
        if value.__module__ == "__main__"
    ]
    lines: list[str] = []
    for value in local:
        members = vars(value) if inspect.isclass(value) else {"": value}
        for key, member in members.items():
            function = getattr(member, "fget", getattr(member, "__func__", member))
            if inspect.isfunction(function):
                try:
                    lines.append(inspect.getsource(function))
                except OSError:
                    raise UserError(
                        "Python keeps no source of it in this session, which "
                        "the digest of a run needs: define it in a file or in a notebook",
                        at=value.__name__,
                    ) from None
            elif isinstance(member, (int, float, str, tuple)) and not key.startswith("__"):
                lines.append(f"{value.__name__}.{key} = {member!r}\n")
    return "".join(lines)


def format_error(error: BaseException, *objects: Callable[..., Any]) -> str:
    """Format an exception in one line; add file and line unless the suite raised it.

    Args:
        error: the exception.
        objects: classes and functions in use. The message names the innermost line in a file that
            defines one of them or a user's base class; else the innermost line.
    """
    text = " ".join(str(error).split())
    if isinstance(error, VclRadialError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    files = {file for value in objects for file in _files(value)}
    last = frames[-1] if frames else None
    frame = next((f for f in reversed(frames) if f.filename in files), last)
    at = f" ({Path(frame.filename).name}, line {frame.lineno}, in {frame.name})" if frame else ""
    return f"{type(error).__name__}: {text}{at}"


def _modules(value: Callable[..., Any]) -> set[str]:
    """The module of a function, or the modules of a class and its base classes."""
    return {cls.__module__ for cls in getattr(value, "__mro__", (value,))}


def _files(value: Callable[..., Any]) -> set[str | None]:
    """The files of a class and of its base classes outside the suite, or of a function."""
    suite = ("vcl_radial.", "avalanche.")
    between = {module for module in _modules(value) if not module.startswith(suite)}
    modules = (sys.modules.get(name) for name in {value.__module__, *between})
    return {getattr(module, "__file__", None) for module in modules}


def _import_cause(error: BaseException) -> str:
    """Why a module cannot be imported, with the line that failed."""
    text = " ".join(str(error).split())
    # Earlier frames are the machinery of imports; a syntax error names file and line itself.
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    if isinstance(error, SyntaxError) or len(frames) < 2:
        return text
    line = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
    return f"{text} ({type(error).__name__} in {line})"


def _search_path_fix(module_name: str, error: BaseException) -> str:
    """The fix if the user's module itself is not found; else an empty text."""
    if not isinstance(error, ModuleNotFoundError) or not module_name.startswith(error.name or "/"):
        return ""
    return (
        "; put its file beside the .toml, or run the command in the folder of its file, or name "
        "that folder in PYTHONPATH"
    )
