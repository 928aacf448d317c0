import errno
import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path

import pytest
import torch
from tiny_runs import tiny_run

from vcl_radial.errors import UserError
from vcl_radial.runs.folder import (
    RunFolder,
    failure,
    finished_fault,
    write_atomically,
)

RESULT_FILES = ("spec.toml", "accuracy.csv", "metrics.json", "environment.json")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path, tiny_run())
    folder.start()
    return folder


def finish(folder: RunFolder) -> None:
    folder.finish({name: f"content of {name}\n" for name in RESULT_FILES if name != "spec.toml"})


def failing_with(code: int):
    def fail(*_args, **_kwargs):
        raise OSError(code, os.strerror(code))

    return fail


def stamped(data: bytes) -> bytes:
    return hashlib.sha256(data).digest() + data


def test_a_written_file_replaces_the_old_one_and_all_may_read_it(tmp_path: Path):
    path = tmp_path / "new" / "file"
    for content in (b"old", "nü"):
        write_atomically(path, content)
    assert path.read_text() == "nü"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_a_page_that_names_a_folder_of_odd_bytes_can_be_written_and_read(tmp_path: Path):
    path = tmp_path / "page"
    write_atomically(path, f"made of {os.fsdecode(b'caf' + bytes([0xE9]))} →")
    assert path.read_text(encoding="utf-8") == r"made of caf\udce9 →"


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")
    monkeypatch.setattr(os, "fsync", failing_with(errno.ENOSPC))
    with pytest.raises(UserError, match="file: cannot be written: No space left on device; free"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_write_left_goes_with_the_next_one(tmp_path: Path):
    for name in (".file.abcd1234", ".file.other", ".other.abcd1234"):
        (tmp_path / name).touch()
    write_atomically(tmp_path / "file", "new")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"file", ".file.other", ".other.abcd1234"}


def test_of_two_who_write_a_file_at_once_one_is_the_last(tmp_path: Path, monkeypatch):
    path, whole = tmp_path / "file", os.fsync

    def meanwhile(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", whole)
        write_atomically(path, "theirs")
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    write_atomically(path, "ours")
    assert path.read_text() == "ours"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch):
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", "new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_deleted_at_work_is_named(folder: RunFolder):
    shutil.rmtree(folder.path)
    for step in (lambda: folder.save_checkpoint({}), lambda: finish(folder)):
        with pytest.raises(UserError, match=r"seed-0-\w+: was deleted during its run"):
            step()
    assert not folder.path.exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file/below: cannot be written: "):
        write_atomically(tmp_path / "file" / "below", "")
    monkeypatch.setattr(tempfile, "mkstemp", failing_with(errno.EACCES))
    with pytest.raises(UserError, match=r"cannot be written: Permission denied; .*another folder"):
        write_atomically(tmp_path / "other", "")


def test_a_folder_is_finished_from_the_marker_on_and_then_has_no_checkpoint(folder: RunFolder):
    folder.save_checkpoint({})
    assert folder.fault() == "not finished"
    finish(folder)
    assert folder.fault() is None
    assert not folder.checkpoint.exists()


@pytest.mark.parametrize("name", RESULT_FILES)
def test_an_altered_or_missing_result_file_is_named(folder: RunFolder, name):
    finish(folder)
    path = folder.path / name
    path.write_text(path.read_text() + " ")
    assert folder.fault() == f"{path} was altered after the run"
    path.unlink()
    assert folder.fault() == f"{path} is missing"


def test_a_marker_that_may_not_be_read_says_nothing_of_the_run(folder: RunFolder, monkeypatch):
    def denied(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(UserError, match="done: permission denied; make it readable"):
        folder.fault()


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", "\x00"])
def test_a_damaged_marker_is_no_marker(folder: RunFolder, content):
    finish(folder)
    (folder.path / "done").write_text(content)
    assert folder.fault() == f"{folder.path / 'done'} is damaged"


def test_a_run_that_starts_again_is_not_finished_any_more(folder: RunFolder):
    finish(folder)
    folder.start()
    assert folder.fault() == "not finished"


def test_a_checkpoint_comes_back_as_it_was_saved(folder: RunFolder):
    assert folder.load_checkpoint() is None
    state = {"weights": {"w": torch.arange(3.0)}, "rows": [(0, 1, "nll", 0.5)], "done": 2}
    folder.save_checkpoint(state)
    loaded = folder.load_checkpoint()
    assert loaded is not None
    assert torch.equal(loaded["weights"]["w"], state["weights"]["w"])
    assert (loaded["rows"], loaded["done"]) == (state["rows"], 2)


@pytest.mark.parametrize("other", [{"seed": 1}, {"epochs": 2}])
def test_a_checkpoint_of_another_spec_is_refused(folder: RunFolder, tmp_path: Path, other):
    foreign = RunFolder(tmp_path, tiny_run(**other))
    foreign.save_checkpoint({"done": 2})
    folder.checkpoint.write_bytes(foreign.checkpoint.read_bytes())
    with pytest.raises(UserError, match=r"checkpoint\.pt: belongs to another spec; delete it"):
        folder.load_checkpoint()


def test_any_damage_to_a_checkpoint_is_noticed(folder: RunFolder):
    folder.save_checkpoint({"weights": torch.zeros(4)})
    whole = folder.checkpoint.read_bytes()
    flipped = [
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        for place in (0, 40, len(whole) // 2, len(whole) - 1)
    ]
    for content in (*flipped, whole[:-1], whole[:20], b"", whole + b"\0"):
        folder.checkpoint.write_bytes(content)
        with pytest.raises(UserError, match=r"checkpoint\.pt: damaged .*; delete it"):
            folder.load_checkpoint()


def restored(folder: RunFolder, change) -> None:
    """Change what the checkpoint holds, and give it the right checksum."""
    state = folder.load(folder.checkpoint.name)
    assert state is not None
    change(state)
    folder.save(folder.checkpoint.name, state)


WRONG = {
    "a shape": (lambda s: s["past"].update(w=torch.zeros(3)), r"past\.w is float32 \[3\], not"),
    "a dtype": (lambda s: s["past"].update(w=s["past"]["w"].double()), r"past\.w is float64 \[2\]"),
    "a type": (lambda s: s.update(seen=5.0), "seen is float, not int"),
    "a missing key": (lambda s: s["past"].clear(), r"past\.w is missing"),
    "an additional key": (lambda s: s["past"].update(v=torch.zeros(1)), r"past\.v is unknown"),
    "an additional tensor": (lambda s: s["memory"].append(torch.ones(1)), r"memory\.1 is unknown"),
    "NaN": (lambda s: s["memory"][0].fill_(float("nan")), r"memory\.0 holds NaN"),
    "one NaN": (lambda s: s["past"]["w"][1:].fill_(float("nan")), r"past\.w holds NaN"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_a_checkpoint_of_other_tensors_than_were_stored_is_refused(
    folder: RunFolder, change, words
):
    state = {"past": {"w": torch.ones(2)}, "memory": [torch.ones(2, 2)], "seen": 5}
    folder.save_checkpoint(state)
    restored(folder, change)
    with pytest.raises(UserError, match=rf"checkpoint\.pt: {words}.*; delete it to run this seed"):
        folder.load_checkpoint()


def test_a_checkpoint_may_hold_infinities_scores_that_are_undefined_and_empty_tensors(
    folder: RunFolder,
):
    state = {"flat": torch.tensor([float("inf")]), "none": torch.empty(0), "auc": float("nan")}
    folder.save_checkpoint(state)
    loaded = folder.load_checkpoint()
    assert loaded is not None
    assert loaded.keys() == state.keys()


class _Payload:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_a_checkpoint_that_holds_a_pickled_object_is_refused_and_never_run(
    folder: RunFolder, tmp_path: Path
):
    trace, buffer = tmp_path / "was executed", io.BytesIO()
    torch.save({"spec": folder.run.digest(), "seed": 0, "x": _Payload(trace)}, buffer)
    folder.checkpoint.write_bytes(stamped(buffer.getvalue()))
    with pytest.raises(UserError, match=r"checkpoint\.pt: holds more than plain tensors; delete"):
        folder.load_checkpoint()
    assert not trace.exists()
    buffer.seek(0)
    torch.load(buffer, weights_only=False)
    assert trace.exists(), "the payload of this test does nothing, so it proves nothing"


def test_a_checkpoint_that_holds_no_table_is_refused(folder: RunFolder):
    buffer = io.BytesIO()
    torch.save([torch.zeros(2)], buffer)
    folder.checkpoint.write_bytes(stamped(buffer.getvalue()))
    with pytest.raises(UserError, match="belongs to another spec"):
        folder.load_checkpoint()


def test_a_checkpoint_that_cannot_be_read_is_named(folder: RunFolder):
    folder.checkpoint.mkdir()
    with pytest.raises(UserError, match=r"checkpoint\.pt: cannot be read: "):
        folder.load_checkpoint()


OUTSIDE = ["../x", "/etc/hostname", "..", ".", "", "a/b", "\x00", "x" * 5000]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_marker_names_files_of_its_own_folder_alone(folder: RunFolder, name):
    (folder.path.parent / "x").write_text("x")
    sums = {name: hashlib.sha256(b"x").hexdigest()}
    (folder.path / "done").write_text(json.dumps(sums))
    assert finished_fault(folder.path, ()) == f"{folder.path / 'done'} is damaged"


@pytest.mark.parametrize(
    "content", ["[" * 200_000, '["a"]', "3", '"a"', '{"a": {"b": 1}}', "1e999"]
)
def test_a_marker_that_holds_something_else_is_damaged(folder: RunFolder, content):
    (folder.path / "a").write_text("x")
    (folder.path / "done").write_text(content)
    assert finished_fault(folder.path, ("a",)) in (
        f"{folder.path / 'done'} is damaged",
        f"{folder.path / 'a'} was altered after the run",
    )


@pytest.mark.parametrize("name", ["done", "spec.toml", "failed.txt", "checkpoint.pt"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_what_is_no_regular_file_is_never_waited_for(folder: RunFolder, name, make):
    finish(folder)
    path = folder.path / name
    path.unlink(missing_ok=True)
    make(path)
    if name in ("done", "spec.toml"):
        assert folder.fault() is not None
    elif name == "failed.txt":
        assert failure(folder.path) is None
    else:
        with pytest.raises(UserError, match="cannot be read"):
            folder.load_checkpoint()


def test_a_checkpoint_that_grows_when_it_is_read_is_refused(folder: RunFolder):
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(10**6)}, buffer)
    small = io.BytesIO()
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    data = small.getvalue()
    folder.checkpoint.write_bytes(stamped(data))
    with pytest.raises(UserError, match="holds more than plain tensors"):
        folder.load_checkpoint()
