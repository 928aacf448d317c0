"""The database of a sweep: an SQLite file in its folder, or any other that Optuna can use."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.errors import UserError

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

FILE = "study.db"


@contextmanager
def opened(folder: Path, url: str | None) -> Iterator[RDBStorage]:
    """The database; a damaged file is set aside, and what it held is made anew from the runs.

    Args:
        folder: of the sweep.
        url: of a database, or None for the file in the folder.

    Raises:
        UserError: it cannot be reached or used.
    """
    import optuna
    from sqlalchemy.engine import URL

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if url is None:
        path = folder / FILE
        fault = _fault(path)
        if fault is not None:
            set_aside(path, fault)
        url = URL.create("sqlite", database=str(path.absolute())).render_as_string()
        url = url.replace("{", "{{").replace("}", "}}")  # Optuna formats it
    with in_words():
        # A connection may have gone while runs were trained: look before it is used.
        storage = optuna.storages.RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


def set_aside(path: Path, fault: str) -> None:
    """Move a damaged file out of the way and say so."""
    number = 1
    while (other := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(other)
    for rest in ("-journal", "-wal", "-shm"):
        path.with_name(path.name + rest).unlink(missing_ok=True)
    print(
        f"{path}: damaged ({fault}); kept as {other.name} and made anew: no finished run is lost",
        flush=True,
    )


@contextmanager
def in_words() -> Iterator[None]:
    """Say in one line what a database did not do.

    Raises:
        UserError: it did not.
    """
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, OptunaError, ImportError) as error:
        cause = error.__cause__ or error
        words = " ".join(str(getattr(cause, "orig", None) or cause).split())
        raise UserError(f"the sweep's database cannot be used: {words}") from None


def _fault(path: Path) -> str | None:
    """What is wrong with an SQLite file, or None; SQLite mends what an interruption left."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            (words,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in tables}
    except sqlite3.OperationalError as error:  # locked, unreadable or on a full disk
        if "malformed" not in str(error):
            raise UserError(f"{path}: cannot be used: {error}") from None
        return str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    if words == "ok" and names and not {"studies", "trials", "alembic_version"} <= names:
        return "tables are missing"
    return None if words == "ok" else str(words)
