"""Who works in a run's folder: one at a time, and whoever dies lets go of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vcl_radial.errors import UserError
from vcl_radial.runs.lock import held

HOLDER = """
import sys, time
from pathlib import Path
from vcl_radial.runs.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path):
    path = tmp_path / "benchmark" / "method" / "seed-0"
    with held(path):
        with pytest.raises(UserError, match="another command is running this run"), held(path):
            pass
        with held(path.with_name("seed-1")):
            pass
    with held(path):
        pass


def test_who_is_killed_lets_go(tmp_path: Path):
    path = tmp_path / "seed-0"
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(UserError, match="is running this run"), held(path):
                pass
        finally:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
        with held(path):
            pass


def test_what_is_written_meanwhile_stays_and_an_empty_folder_goes(tmp_path: Path):
    kept, empty = tmp_path / "b" / "m" / "kept", tmp_path / "b" / "m" / "empty"
    with held(kept), held(empty):
        (kept / "file").touch()
    assert [path.name for path in (tmp_path / "b" / "m").iterdir()] == ["kept"]
    (kept / "file").unlink()
    with held(kept):
        pass
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_taken_leaves_the_others_free(tmp_path: Path):
    free, taken = tmp_path / "b" / "m" / "free", tmp_path / "b" / "m" / "taken"
    with held(taken):
        with pytest.raises(UserError, match="is running this run"), held(free), held(taken):
            pass
        with held(free):
            pass


def test_a_folder_that_is_deleted_meanwhile_is_still_held(tmp_path: Path):
    path = tmp_path / "b" / "m" / "seed-0"
    with held(path):
        path.rmdir()
        with pytest.raises(UserError, match="is running this run"), held(path):
            pass
    with held(path):
        assert path.is_dir()


def test_a_place_where_no_folder_can_be_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match="file/seed-0: cannot be written: "),
        held(tmp_path / "file" / "seed-0"),
    ):
        pass
