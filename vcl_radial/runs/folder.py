"""A run's folder: written atomically, so that it is complete or resumable and never half a lie."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import tomli_w

from vcl_radial.errors import UserError, visible
from vcl_radial.files import atomic, reading
from vcl_radial.runs.environment import Engine, loaded
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.states import difference, nan_in, structure

SPEC, ENVIRONMENT = "spec.toml", "environment.json"
"""Every run has these two files beside its results."""

FAILED = "failed.txt"
"""What the last attempt of an unfinished run ended with, in one line."""

DIVERGED = "diverged"
"""Beside FAILED: the run failed because it diverged, and would again."""

TRACEBACK = "traceback.txt"
"""Of a fault in the code, whole."""

ANEW = "delete it to run this seed from its start"
"""What to do with a checkpoint that is of no use."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there whole or not at all.

    Raises:
        UserError: it cannot be written; names the file and why.
    """
    if isinstance(content, str):
        # A page names folders, and a folder's name need not be UTF-8: its odd bytes as codes.
        content = content.encode(errors="backslashreplace")
    try:
        atomic.write(path, content)
    except OSError as error:
        raise not_written(path, error) from None


def not_written(path: Path, error: OSError) -> UserError:
    """That a file could not be written, in words."""
    return UserError(
        f"{path}: cannot be written: {error.strerror or error}; free space or choose another folder"
    )


def make_folder(path: Path) -> None:
    """Make a folder before the work that is to be written there, not after it.

    Raises:
        UserError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(path, error) from None


def check_page(page: Path, comes_with: Iterable[str], mark: str | None = None) -> None:
    """See that a page which is to be written takes the place of none that someone else wrote.

    Args:
        page: of a command.
        comes_with: names or patterns of files beside it, of which the command writes one at least.
        mark: what stands in the command's page.

    Raises:
        UserError: the page is there without its mark, and without these files.
    """
    if not page.is_file() or any(any(page.parent.glob(pattern)) for pattern in comes_with):
        return
    try:
        ours = mark is not None and mark.encode() in reading.read_bytes(page)
    except OSError:
        ours = False
    if not ours:
        raise UserError(
            f"{page}: is there, and no page of this command; choose another folder with --to"
        )


def check_output(out: Path) -> None:
    """See that a folder can be written to, or made; one that is not there is not left behind.

    Raises:
        UserError: it cannot.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        writable = os.access(out, os.W_OK | os.X_OK)
    except OSError as error:
        raise UserError(
            f"{out}: cannot be made: {error.strerror}; choose another folder with --out"
        ) from None
    finally:
        for folder in made:
            with suppress(OSError):  # another command has put something there
                folder.rmdir()
    if not writable:
        raise UserError(f"{out}: is not writable; choose another folder with --out")


class DamagedCheckpoint(UserError):
    """A checkpoint is not as it was written: cut off, or with other bytes."""


def discard_damaged(checkpoint: Path) -> None:
    """Say that a checkpoint is damaged, and throw it away."""
    print(f"{checkpoint}: damaged (its checksum is wrong); this run starts anew", flush=True)
    checkpoint.unlink(missing_ok=True)


R = TypeVar("R", bound=RunSpec)


class RunFolder(Generic[R]):
    """`<out>/<benchmark>/<method>/seed-<n>-<hash of the spec>/`.

    spec.toml         every key
    checkpoint.pt     the state after the last step; gone when the run is done
    environment.json  where the numbers came from
    done              checksums of the run's `result_files`; written last
    failed.txt        what the last attempt ended with, where it failed; a fault in the code has a
                      traceback.txt beside it, a run that diverged the empty file diverged

    Attributes:
        commits: that trained what the checkpoint holds, as far as it was loaded.
        engines: with which; that of this process is for the caller to add.
    """

    def __init__(self, out: Path, run: R) -> None:
        self.run = run
        self.path = out / run.benchmark / run.method / f"seed-{run.seed}-{run.digest()}"
        self.commits: list[str | None] = []
        self.engines: list[Engine] = []
        self._started = False

    @property
    def checkpoint(self) -> Path:
        """The state after the last finished step; gone when the run is done."""
        return self.path / "checkpoint.pt"

    def start(self) -> None:
        """Make the folder and write the resolved spec into it; from now on it is not finished."""
        write_atomically(self.path / SPEC, tomli_w.dumps(self.run.settings()))
        self._started = True
        (self.path / "done").unlink(missing_ok=True)

    def finish(self, files: Mapping[str, str]) -> None:
        """Write the result files, then the marker that holds their checksums.

        Raises:
            UserError: the folder was deleted, or a file cannot be written.
        """
        self._check_there()
        for name, content in files.items():
            write_atomically(self.path / name, content)
        mark_finished(self.path, {*self.run.result_files, *files})
        self.checkpoint.unlink(missing_ok=True)

    def fault(self) -> str | None:
        """Why this folder holds no finished run, or None if it holds one."""
        return finished_fault(self.path, self.run.result_files)

    def discard_leftover(self) -> None:
        """Remove the checkpoint of a finished run, where a kill came between marker and removal."""
        with suppress(OSError):  # it does no harm
            self.checkpoint.unlink(missing_ok=True)

    def finished(self) -> bool:
        """Whether a finished run lies here, unaltered."""
        return self.fault() is None

    def forget_faults(self) -> None:
        """Remove what an earlier attempt left of its end."""
        for name in (FAILED, DIVERGED, TRACEBACK):
            with suppress(OSError):
                (self.path / name).unlink()

    def record_fault(self, fault: str | None, *, diverged: bool) -> None:
        """Keep what an attempt ended with.

        Raises:
            UserError: it cannot be written.
        """
        if diverged:
            write_atomically(self.path / DIVERGED, "")
        write_atomically(self.path / FAILED, f"{visible(fault or '')}\n")

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        """Store plain tensors and numbers, stamped with the spec that they belong to."""
        store(self.path / name, self._stamp, state)

    def load(self, name: str) -> dict[str, Any] | None:
        """What `save` stored, or None if there is nothing.

        Raises:
            DamagedCheckpoint: its checksum is wrong.
            UserError: the file holds something else or belongs to another spec. It is never
                unpickled.
        """
        return stored(self.path / name, self._stamp, "spec")

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Store a state, with the commits and engines that made it.

        Raises:
            UserError: the folder was deleted, or the file cannot be written.
        """
        self._check_there()
        behind = {
            "commits": [*self.commits, loaded()],
            "engines": self.engines,
            "structure": structure(state),
        }
        self.save(self.checkpoint.name, {**state, **behind})

    def load_checkpoint(self) -> dict[str, Any] | None:
        """The stored state, or None if there is none; commits and engines are taken from it.

        Raises:
            DamagedCheckpoint: its checksum is wrong.
            UserError: see `load`; or its tensors are not those that were stored.
        """
        state = self.load(self.checkpoint.name)
        if state is not None:
            self.commits = list(dict.fromkeys(state.pop("commits", [])))
            self.engines = list(state.pop("engines", []))
            expected = state.pop("structure", None)
            is_now = structure(state)
            if isinstance(expected, dict) and (fault := difference(is_now, expected)) is not None:
                raise UserError(f"{self.checkpoint}: {fault}; {ANEW}")
        return state

    def _check_there(self) -> None:
        if self._started and not (self.path / SPEC).exists():
            raise _deleted(self.path)

    @property
    def _stamp(self) -> dict[str, Any]:
        return {"spec": self.run.digest(), "seed": self.run.seed}


def store(path: Path, stamp: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Keep plain tensors and numbers with the stamp of what they belong to, behind a checksum.

    Raises:
        UserError: the file cannot be written.
    """
    import torch

    buffer = io.BytesIO()
    torch.save({**stamp, **state}, buffer)
    data = buffer.getvalue()
    write_atomically(path, hashlib.sha256(data).digest() + data)


def stored(path: Path, stamp: Mapping[str, Any], owner: str) -> dict[str, Any] | None:
    """What `store` kept, without its stamp, or None if there is nothing.

    Args:
        path: of the file.
        stamp: that it has to bear.
        owner: what a stamp stands for, in words.

    Raises:
        DamagedCheckpoint: the checksum is wrong.
        UserError: the file holds something else, NaN or another stamp. It is never unpickled.
    """
    import torch

    try:
        content = reading.read_bytes(path, reading.LARGE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    checksum, data = content[:32], content[32:]
    if hashlib.sha256(data).digest() != checksum:
        raise DamagedCheckpoint(f"{path}: damaged (its checksum is wrong); {ANEW}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:  # which are not compressed
            size = sum(part.file_size for part in parts.infolist())
        whole = io.BytesIO(data if size <= len(data) else b"")
        state: Any = torch.load(whole, weights_only=True, map_location="cpu")
    except Exception:  # weights_only refuses in many ways
        raise UserError(f"{path}: holds more than plain tensors; {ANEW}") from None
    if not isinstance(state, dict) or any(state.get(key) != stamp[key] for key in stamp):
        raise UserError(f"{path}: belongs to another {owner}; {ANEW}")
    if (name := nan_in(state)) is not None:
        raise UserError(f"{path}: {name} holds NaN; {ANEW}")
    return {key: value for key, value in state.items() if key not in stamp}


def mark_finished(path: Path, names: Iterable[str]) -> None:
    """Write the marker with the checksums of a folder's files.

    Raises:
        UserError: one of them is gone, or the marker cannot be written.
    """
    try:
        sums = {name: reading.checksum(path / name) for name in names}
    except FileNotFoundError:
        raise _deleted(path) from None
    write_atomically(path / "done", json.dumps(sums, indent=2) + "\n")


def _deleted(path: Path) -> UserError:
    return UserError(f"{path}: was deleted while its run was at work; give the same command again")


def finished_fault(path: Path, files: Sequence[str]) -> str | None:
    """Why a folder holds no finished run ("not finished", or what is damaged), or None.

    Its marker names files of the folder itself alone.

    Args:
        path: of the folder.
        files: that a finished run has at least.

    Raises:
        UserError: a file may not be read, which says nothing of the run.
    """
    try:
        sums = reading.read_json(path / "done")
        names = {*files, *sums}
        if any(name != Path(name).name for name in names):
            return f"{path / 'done'} is damaged"
        for name in names:
            if reading.checksum(path / name) != sums[name]:
                return f"{path / name} was altered after the run"
    except FileNotFoundError as error:
        if error.filename and Path(error.filename).name != "done":
            return f"{error.filename} is missing"
        return "not finished"
    except PermissionError as error:
        raise UserError(
            f"{error.filename}: permission denied; let it be read, and give the command again"
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        return f"{path / 'done'} is damaged"
    return None


def unfinished(path: Path, fault: str) -> str:
    """What `finished_fault` found, in a line for whoever reads many folders."""
    if fault != "not finished":
        return f"{path}: {fault.removeprefix(f'{path}/')}"
    if (reason := failure(path)) is not None:
        return f"{path}: failed: {reason}"
    return f"{path}: {fault}; the command that began it goes on with it"


def failure(path: Path) -> str | None:
    """What the last attempt of a run ended with, in one line; None where it was stopped."""
    try:
        text = reading.read_bytes(path / FAILED).decode(errors="replace")
    except OSError:
        return None
    return visible(" ".join(text.split())) or None


def divergence(path: Path) -> str | None:
    """Why a run diverged, in one line; None where it did not."""
    return failure(path) if (path / DIVERGED).exists() else None


def read_spec(path: Path) -> dict[str, Any]:
    """The resolved spec of a run folder as a table.

    Raises:
        OSError, ValueError: see `reading.read_toml`.
    """
    return reading.read_toml(path / SPEC)
