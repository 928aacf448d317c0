"""Log the curves of a run to TensorBoard and Weights & Biases, for every track.

The scalars of every step are logged at the number of training steps. A run that resumes from its
checkpoint continues the same log: steps logged after the checkpoint are logged again, with the
same numbers. Nothing here draws from the run's random numbers.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vcl_radial.errors import UserError, bad_value, nearest
from vcl_radial.files.reading import read_bytes
from vcl_radial.runs.context import Log, Logger
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.training import Step


@contextmanager
def tensorboard(folder: RunFolder[Any], at: int) -> Iterator[Log]:
    """Log a run to TensorBoard in the folder `tensorboard` of the run."""
    from torch.utils.tensorboard import SummaryWriter

    path = folder.path / "tensorboard"
    with _disk(path):
        # Steps that an interrupted run logged after its checkpoint are hidden and logged again.
        writer = SummaryWriter(path, purge_step=at + 1 if at else 0)

    def log(step: Step) -> None:
        with _disk(path):
            for name, value in step.scalars.items():
                writer.add_scalar(name, value, step.at)
            writer.flush()

    try:
        yield log
    finally:
        with _disk(path):
            writer.close()


@contextmanager
def wandb(folder: RunFolder[Any], at: int) -> Iterator[Log]:
    """Log to Weights & Biases, offline unless $WANDB_MODE is set; `wandb sync` uploads the log."""
    from pydantic import ValidationError

    run, path = folder.run, folder.path / "wandb"
    mode = os.environ.get("WANDB_MODE", "offline")
    if mode != "online":
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        import wandb as package
    except ImportError:
        raise bad_value("log", "wandb", "needs the package: pip install wandb") from None
    try:
        session = package.init(
            project="vcl-radial",
            name=f"{run.benchmark}/{run.method}/seed-{run.seed}",
            group=f"{run.benchmark}/{run.method}",
            id=_identity(path),
            mode=mode,  # type: ignore[arg-type]
            resume="allow" if mode == "online" else None,
            config=run.settings(),
            dir=folder.path,
            settings=package.Settings(
                console="off", silent=True, disable_git=True, save_code=False
            ),
        )
    except ValidationError as error:  # wandb reads its variables as settings
        fault = error.errors()[0]
        key = "_".join(str(part).upper() for part in fault["loc"])
        raise UserError(fault["msg"], at=f"log = 'wandb': $WANDB_{key}") from None
    except (package.Error, OSError) as error:
        raise UserError(" ".join(str(error).split()), at="log = 'wandb'") from None

    def log(step: Step) -> None:
        if step.scalars:
            session.log(dict(step.scalars), step=step.at)

    failed = True
    try:
        yield log
        failed = False
    finally:
        session.finish(exit_code=int(failed))


LOGGERS: Mapping[str, Logger] = {"tensorboard": tensorboard, "wandb": wandb}
"""The loggers, by their names for `log`."""


def loggers_of(names: Sequence[str]) -> dict[str, Logger]:
    """The loggers of these names.

    Raises:
        UserError: there is no such logger.
    """
    for name in names:
        if name not in LOGGERS:
            raise bad_value("log", name, f"the nearest logger is {nearest(name, LOGGERS)!r}")
    return {name: LOGGERS[name] for name in names}


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror or error}; free space, or run without loggers",
            at=folder,
        ) from None


def _identity(folder: Path) -> str:
    """The id of a run for wandb, stored beside its logs, so that a resumed run keeps it."""
    path = folder / "run-id"
    with _disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            known = read_bytes(path).decode("ascii", errors="replace").strip()
        except FileNotFoundError:
            known = ""
        if not (known.isalnum() and known.isascii()):
            known = secrets.token_hex(6)  # does not draw from the run's random numbers
            path.write_text(known + "\n", encoding="ascii")
    return known
