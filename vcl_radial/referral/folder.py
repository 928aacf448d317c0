"""A referral run's folder: `<out>/<benchmark>/<method>/seed-<n>-<hash of the spec>/`.

spec.toml          every key
checkpoint.pt      the state after the last epoch; gone when the run is done
predictions.csv    a line for each photograph that is scored on
scores.csv, calibration.csv, history.csv, environment.json
weights.pt         the selected weights of every member after every site; not of a run that is
                   scored on validation data: of such there are many, each for its score alone
done               checksums of all these; written last
failed.txt         what the last attempt ended with, where it failed; a fault in the code has a
                   traceback.txt beside it
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import tomli_w

from vcl_radial.errors import UserError
from vcl_radial.experiments.run_folder import (
    finished_fault,
    mark_finished,
    store,
    stored,
    write_atomically,
)
from vcl_radial.referral.settings import Run

TABLES: Final = ("predictions", "scores", "calibration", "history")
_FILES: Final = ("spec.toml", *(f"{name}.csv" for name in TABLES), "environment.json")


class ReferralFolder:
    """Where a run keeps what it has; `done` is there only if all of it is."""

    def __init__(self, out: Path, run: Run) -> None:
        self.run = run
        self.path = out / run.benchmark / run.method / f"seed-{run.seed}-{run.digest()}"

    @property
    def checkpoint(self) -> Path:
        """The state after the last epoch."""
        return self.path / "checkpoint.pt"

    def finished(self) -> bool:
        """Whether a finished run lies here, unaltered."""
        return self.fault() is None

    def fault(self) -> str | None:
        """Why no finished run lies here, or None."""
        return fault_of(self.path)

    def start(self) -> None:
        """Write the spec; from now on the run is not finished."""
        write_atomically(self.path / "spec.toml", tomli_w.dumps(self.run.settings()))
        (self.path / "done").unlink(missing_ok=True)

    def finish(self, files: Mapping[str, str]) -> None:
        """Write the result files and the marker; the spec and any weights lie there already."""
        for name, content in files.items():
            write_atomically(self.path / name, content)
        weights = ["weights.pt"] if self.run.evaluate_on == "test" else []
        mark_finished(self.path, [*_FILES, *weights])
        self.checkpoint.unlink(missing_ok=True)

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        """Store plain tensors and numbers, stamped with spec and seed, behind a checksum."""
        store(self.path / name, self._stamp, state)

    def load(self, name: str) -> dict[str, Any] | None:
        """What `save` stored, or None if there is nothing.

        Raises:
            DamagedCheckpoint: its checksum is wrong.
            UserError: the file holds something else or belongs to another run. It is never
                unpickled.
        """
        return stored(self.path / name, self._stamp, "run")

    @property
    def _stamp(self) -> dict[str, Any]:
        return {"spec": self.run.digest(), "seed": self.run.seed}


def fault_of(path: Path) -> str | None:
    """Why a folder holds no finished run ("not finished", or what is damaged), or None."""
    return finished_fault(path, _FILES)


def read_spec(path: Path) -> Run:
    """The run of a folder.

    Raises:
        UserError: its spec is missing or damaged.
    """
    try:
        return Run.model_validate(tomllib.loads((path / "spec.toml").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise UserError(f"{path / 'spec.toml'}: missing or damaged; run it again") from None
