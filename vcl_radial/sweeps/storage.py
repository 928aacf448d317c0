"""A shared database of trials, through Optuna's storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vcl_radial.errors import UserError

if TYPE_CHECKING:
    from optuna.storages import RDBStorage


@contextmanager
def opened(url: str | None) -> Iterator[RDBStorage | None]:
    """Open the database at a URL; None without one. Its errors inside become one line.

    Raises:
        UserError: the database cannot be reached or used.
    """
    if url is None:
        yield None
        return
    from optuna.exceptions import OptunaError
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SQLAlchemyError

    try:
        # A connection may close during training, so it is tested before each use.
        storage = RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except (SQLAlchemyError, OptunaError, ImportError) as error:
        cause = error.__cause__ or error
        reason = " ".join(str(getattr(cause, "orig", None) or cause).split())
        raise UserError(f"the sweep's database cannot be used: {reason}") from None
