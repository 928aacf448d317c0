import sqlite3

import pytest


@pytest.fixture(scope="session", autouse=True)
def _databases_without_waiting_for_the_disk():
    """As files in the other tests."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def connected(connection, record):
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", connected)
    yield
    event.remove(Engine, "connect", connected)
