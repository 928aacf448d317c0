"""The folder of a run: written atomically, so that it is always complete or resumable."""

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
from vcl_radial.files.atomic import not_written
from vcl_radial.runs.environment import Engine, loaded
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.states import difference, nan_in, structure

SPEC, ENVIRONMENT = "spec.toml", "environment.json"
"""Every run has these two files beside its results."""

FAILED = "failed.txt"
"""The file with the reason why the last attempt of an unfinished run failed, in one line."""

DIVERGED = "diverged"
"""The empty file beside FAILED of a run that diverged, and would diverge again."""

TRACEBACK = "traceback.txt"
"""The file with the whole traceback of a fault in the code."""

RESTART = "delete it to run this seed from its start"
"""The fix for a checkpoint that cannot be used."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that it is complete or not there at all.

    Raises:
        UserError: the file cannot be written; the message names it and the reason.
    """
    if isinstance(content, str):
        # A page names folders, and a name need not be UTF-8: other bytes are written as codes.
        content = content.encode(errors="backslashreplace")
    try:
        atomic.write(path, content)
    except OSError as error:
        raise not_written(path, error) from None


def make_folder(path: Path) -> None:
    """Make a folder before the work starts whose results it is to hold.

    Raises:
        UserError: the folder cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(path, error) from None


def check_page(page: Path, comes_with: Iterable[str], mark: str | None = None) -> None:
    """Check that a command does not overwrite a page that it has not written.

    Args:
        page: path of the command's page.
        comes_with: names or patterns of files beside it; the command writes at least one of them.
        mark: text that every page of the command holds.

    Raises:
        UserError: the page exists without the mark and without these files.
    """
    if not page.is_file() or any(any(page.parent.glob(pattern)) for pattern in comes_with):
        return
    try:
        ours = mark is not None and mark.encode() in reading.read_bytes(page)
    except OSError:
        ours = False
    if not ours:
        raise UserError(
            "exists, and this command has not written it; choose another folder", at=page
        )


def check_output(out: Path) -> None:
    """Check that a folder can be made and written to; a folder made for this is removed.

    Raises:
        UserError: the folder cannot be made or is not writable.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        make_folder(out)
        if not os.access(out, os.W_OK | os.X_OK):
            raise UserError("is not writable; choose another folder", at=out)
    finally:
        for folder in made:
            with suppress(OSError):  # another command has put something there
                folder.rmdir()


class DamagedCheckpoint(UserError):
    """A checkpoint was cut off or changed after it was written."""


R = TypeVar("R", bound=RunSpec)


class RunFolder(Generic[R]):
    """The folder `<out>/<benchmark>/<method>/seed-<n>-<hash of the spec>/`.

    spec.toml         every key
    checkpoint.pt     the state after the last step; removed when the run is finished
    environment.json  the environment that computed the numbers
    done              checksums of the run's `result_files`; written last
    failed.txt        why the last attempt failed; a fault in the code has a traceback.txt beside
                      it, a run that diverged the empty file diverged

    Attributes:
        commits: commits of the processes that computed the loaded checkpoint.
        engines: engines that computed the loaded checkpoint; the caller adds the engine of this
            process.
    """

    def __init__(self, out: Path, run: R) -> None:
        self.run = run
        self.path = out / run.benchmark / run.method / f"seed-{run.seed}-{run.digest()}"
        self.commits: list[str | None] = []
        self.engines: list[Engine] = []
        self._started = False

    @property
    def checkpoint(self) -> Path:
        """The state after the last finished step; removed when the run is finished."""
        return self.path / "checkpoint.pt"

    def start(self) -> None:
        """Make the folder, write the resolved spec and remove the marker of a finished run."""
        write_atomically(self.path / SPEC, tomli_w.dumps(self.run.settings()))
        self._started = True
        (self.path / "done").unlink(missing_ok=True)

    def finish(self, files: Mapping[str, str]) -> None:
        """Write the result files, then the marker that holds their checksums.

        Raises:
            UserError: the folder was deleted, or a file cannot be written.
        """
        self._check_exists()
        for name, content in files.items():
            write_atomically(self.path / name, content)
        mark_finished(self.path, {*self.run.result_files, *files})
        self.checkpoint.unlink(missing_ok=True)

    def fault(self) -> str | None:
        """Why this folder holds no finished run, or None if it holds one."""
        return finished_fault(self.path, self.run.result_files)

    def discard_leftover(self) -> None:
        """Remove the checkpoint of a run that was killed after its marker was written."""
        with suppress(OSError):  # a leftover file does no harm
            self.checkpoint.unlink(missing_ok=True)

    def finished(self) -> bool:
        """Whether the folder holds a finished run whose files are unchanged."""
        return self.fault() is None

    def forget_faults(self) -> None:
        """Remove the record of an earlier attempt that failed."""
        for name in (FAILED, DIVERGED, TRACEBACK):
            with suppress(OSError):
                (self.path / name).unlink()

    def record_fault(self, fault: str | None, *, diverged: bool) -> None:
        """Write down why an attempt failed.

        Raises:
            UserError: the file cannot be written.
        """
        if diverged:
            write_atomically(self.path / DIVERGED, "")
        write_atomically(self.path / FAILED, f"{visible(fault or '')}\n")

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        """Store plain tensors and numbers with a stamp of the spec.

        Raises:
            UserError: the file cannot be written.
        """
        write_state(self.path / name, {**self._stamp, **state})

    def load(self, name: str) -> dict[str, Any] | None:
        """Load the state that `save` stored; None if there is none.

        Raises:
            DamagedCheckpoint: the checksum of the file is wrong.
            UserError: the file holds something else, NaN or the state of another spec. It is never
                unpickled.
        """
        path, stamp = self.path / name, self._stamp
        try:
            content = reading.read_bytes(path, reading.LARGE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}", at=path) from None
        state = _state_in(path, content)
        if not isinstance(state, dict) or any(state.get(key) != stamp[key] for key in stamp):
            raise UserError(f"belongs to another spec; {RESTART}", at=path)
        if (tensor := nan_in(state)) is not None:
            raise UserError(f"{tensor} holds NaN; {RESTART}", at=path)
        return {key: value for key, value in state.items() if key not in stamp}

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Store a state, with the commits and engines that computed it.

        Raises:
            UserError: the folder was deleted, or the file cannot be written.
        """
        self._check_exists()
        provenance = {
            "commits": [*self.commits, loaded()],
            "engines": self.engines,
            "structure": structure(state),
        }
        self.save(self.checkpoint.name, {**state, **provenance})

    def load_checkpoint(self) -> dict[str, Any] | None:
        """Load the stored state, and its commits and engines into this object; None without one.

        Raises:
            DamagedCheckpoint: the checksum of the file is wrong.
            UserError: see `load`; or a tensor has changed its dtype or shape.
        """
        state = self.load(self.checkpoint.name)
        if state is not None:
            self.commits = list(dict.fromkeys(state.pop("commits", [])))
            self.engines = list(state.pop("engines", []))
            expected = state.pop("structure", None)
            current = structure(state)
            if isinstance(expected, dict) and (fault := difference(current, expected)) is not None:
                raise UserError(f"{fault}; {RESTART}", at=self.checkpoint)
        return state

    def _check_exists(self) -> None:
        if self._started and not (self.path / SPEC).exists():
            raise _deleted(self.path)

    @property
    def _stamp(self) -> dict[str, Any]:
        return {"spec": self.run.digest(), "seed": self.run.seed}


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a checksum, then plain tensors and numbers.

    Raises:
        UserError: the file cannot be written.
    """
    import torch

    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    data = buffer.getvalue()
    write_atomically(path, hashlib.sha256(data).digest() + data)


def _state_in(path: Path, content: bytes) -> Any:
    """The state in the bytes that `write_state` wrote."""
    import torch

    checksum, data = content[:32], content[32:]
    if hashlib.sha256(data).digest() != checksum:
        raise DamagedCheckpoint(f"damaged (its checksum is wrong); {RESTART}", at=path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:  # torch.save does not compress them
            size = sum(part.file_size for part in parts.infolist())
        whole = io.BytesIO(data if size <= len(data) else b"")
        return torch.load(whole, weights_only=True, map_location="cpu")
    except Exception:  # with weights_only, loading fails in many ways
        raise UserError(f"holds more than plain tensors; {RESTART}", at=path) from None


def mark_finished(path: Path, names: Iterable[str]) -> None:
    """Write the marker with the checksums of a folder's files.

    Raises:
        UserError: a file is missing, or the marker cannot be written.
    """
    try:
        sums = {name: reading.checksum(path / name) for name in names}
    except FileNotFoundError:
        raise _deleted(path) from None
    write_atomically(path / "done", json.dumps(sums, indent=2) + "\n")


def _deleted(path: Path) -> UserError:
    return UserError("was deleted during its run; give the same command again", at=path)


def finished_fault(path: Path, files: Sequence[str]) -> str | None:
    """Why a folder holds no finished run ("not finished", or what is damaged); None if it does.

    A marker may only name files directly in the folder.

    Args:
        path: path of the folder.
        files: files that every finished run has.

    Raises:
        UserError: permission to read a file is missing; the run may be finished or not.
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
            "permission denied; make it readable, and give the command again", at=error.filename
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        return f"{path / 'done'} is damaged"
    return None


def unfinished(path: Path, fault: str) -> str:
    """The result of `finished_fault` as one line that names the folder."""
    if fault != "not finished":
        return f"{path}: {fault.removeprefix(f'{path}/')}"
    if (reason := failure(path)) is not None:
        return f"{path}: failed: {reason}"
    return f"{path}: {fault}; the command that started it resumes it"


def failure(path: Path) -> str | None:
    """Why the last attempt of a run failed, in one line; None where it was stopped."""
    try:
        text = reading.read_bytes(path / FAILED).decode(errors="replace")
    except OSError:
        return None
    return visible(" ".join(text.split())) or None


def divergence(path: Path) -> str | None:
    """Why a run diverged, in one line; None where it did not."""
    return failure(path) if (path / DIVERGED).exists() else None


def read_spec(path: Path) -> dict[str, Any]:
    """Read the resolved spec of a run folder as a table.

    Raises:
        OSError, ValueError: see `reading.read_toml`.
    """
    return reading.read_toml(path / SPEC)
