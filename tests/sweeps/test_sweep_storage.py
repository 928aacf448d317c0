"""Trials in a database: SQLite, and a real PostgreSQL server, started for the occasion."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import optuna
import pandas as pd
import pytest
from made_up import made_up
from tiny_sweeps import DIGITS, trials_bytes

from vcl_radial.errors import UserError

TPE = {"kind": "tpe", "trials": 4, "at_once": 2, "search__batch_size": [16, 32]}


def programs() -> Path | None:
    """Where initdb and postgres lie: Debian keeps them out of the path."""
    beside = shutil.which("initdb")
    folders = [Path(beside).resolve().parent] if beside else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


@pytest.fixture(scope="module")
def server():
    """The URL of a server; it refuses to run as root, so it runs as Debian's user then."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (the extra `postgresql`)")
    where = programs()
    if where is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")
    as_user = {}
    folder = Path(tempfile.mkdtemp(prefix="vcl-radial-postgresql-"))
    if os.geteuid() == 0:
        try:
            shutil.chown(folder, "postgres")
        except LookupError:
            shutil.rmtree(folder)
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        as_user = {"user": "postgres", "group": "postgres"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = str(folder / "data")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    subprocess.run(
        [where / "initdb", "-D", data, "-A", "trust", "-U", "sweeper", "-N"],
        check=True,
        **quiet,
        **as_user,
    )
    options = ["-h", "127.0.0.1", "-p", str(port), "-k", str(folder), "-F"]
    process = subprocess.Popen([where / "postgres", "-D", data, *options], **quiet, **as_user)
    url = f"postgresql+psycopg://sweeper@127.0.0.1:{port}/postgres"
    try:
        _wait_for(url, process)
        yield url
    finally:
        process.send_signal(signal.SIGINT)  # at once, whoever is connected
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(url: str, process: subprocess.Popen) -> None:
    import psycopg

    while True:
        try:
            psycopg.connect(url.replace("+psycopg", "")).close()
        except psycopg.OperationalError:
            assert process.poll() is None
            time.sleep(0.1)
        else:
            return


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.processes)], scope="module"
)
def url(request, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "postgresql":
        return request.getfixturevalue("server")
    return f"sqlite:///{tmp_path_factory.mktemp('database')}/trials.db"


def test_others_see_the_trials_and_the_table_is_that_without_a_database(
    url: str, tmp_path: Path
) -> None:
    made_up(tmp_path / "memory", **TPE)
    for trials in (2, 4, 4):  # begun, gone on with, and given once more
        made_up(tmp_path / "shared", storage=url, **{**TPE, "trials": trials})
        study = optuna.load_study(study_name=f"tiny/{DIGITS}/naive", storage=url)
        table = pd.read_csv(tmp_path / "shared/tiny/trials.csv")
        assert [trial.value for trial in study.trials] == list(table.score)
        assert [t.params["batch_size"] for t in study.trials] == list(table.batch_size)
        assert len(table) == trials
    assert trials_bytes(tmp_path / "shared") == trials_bytes(tmp_path / "memory")


def test_the_study_of_another_folder_is_left_alone(url: str, tmp_path: Path) -> None:
    changes = {"search__learning_rate": [0.5], "trials": 1}
    made_up(tmp_path / "first", name="mine", storage=url, **changes)
    with pytest.raises(UserError, match="'mine/"):
        made_up(tmp_path / "second", name="mine", storage=url, **changes)


@pytest.mark.parametrize("url", ["postgresql+psycopg://nobody@127.0.0.1:1/none", "nonsense"])
def test_a_database_that_does_not_answer_is_one_line(url: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the sweep's database cannot be used") as error:
        made_up(tmp_path, storage=url)
    assert "\n" not in str(error.value)
