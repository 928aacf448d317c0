"""A run's curves in TensorBoard and Weights & Biases, through Avalanche's loggers.

What is logged, at the number of training steps done: after every epoch the mean NLL (nats per
point) and the accuracy of the training batches; after every task the scores of every task, and the
average accuracy of the tasks seen. A run that goes on from its checkpoint goes on in the same log:
what it had logged beyond the checkpoint is logged again, with the same numbers.

Nothing here draws from the run's random numbers or changes how a step is made.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from avalanche.evaluation.metrics import EpochAccuracy
from avalanche.evaluation.metrics.loss import LossPluginMetric
from avalanche.logging import TensorboardLogger, WandBLogger
from pydantic import ValidationError
from torch.nn.functional import cross_entropy
from torch.utils.tensorboard import SummaryWriter

from vcl_radial.errors import UserError
from vcl_radial.tracks.continual.training import ContinualRun

AVERAGE = "average_accuracy/eval_phase"
"""The name of the average accuracy over the tasks seen, in per cent."""

TaskDone = Callable[[], None]
"""Called after every task, before its checkpoint: what is checkpointed is in the log."""


class RunLogger(Protocol):
    """What a run asks of a logger, besides Avalanche's callbacks."""

    def log_single_metric(self, name: str, value: float, x_plot: int) -> None:
        """Log a number at a training step."""

    def flush(self) -> None:
        """Bring what was logged to the disk."""

    def close(self, failed: bool) -> None:
        """End the log; `failed` if the run was stopped or went wrong."""


@contextmanager
def logged(
    run: ContinualRun, loggers: Sequence[str], folder: Path, name: str, spec: Mapping[str, Any]
) -> Iterator[TaskDone]:
    """Log a run while it goes on.

    Args:
        run: its checkpoint, where there is one, has been loaded.
        loggers: names of `LOGGERS`.
        folder: the run's own; each logger has a folder in it.
        name: of the run.
        spec: what it was set to, to be shown with its curves.

    Raises:
        UserError: a package is missing or a folder cannot be written.
    """
    made: list[RunLogger] = []
    failed = True
    try:
        for kind in loggers:
            made.append(LOGGERS[kind](folder, name, spec, run))
        evaluator = run.strategy.evaluator
        evaluator.loggers = [*evaluator.loggers, *made]
        evaluator.metrics += [_EpochNLL(), EpochAccuracy()]

        def task_done() -> None:
            for logger in made:
                logger.log_single_metric(AVERAGE, run.average_accuracy(), run.iterations)
                logger.flush()

        yield task_done
        failed = False
    finally:
        for logger in made:
            logger.close(failed)


class _EpochNLL(LossPluginMetric):
    """Mean NLL of an epoch's training batches, in nats per point.

    Avalanche's own `EpochLoss` shows what the loss holds, and that differs from method to method:
    some give the gradient of their penalty without its value.
    """

    def __init__(self) -> None:
        super().__init__(reset_at="epoch", emit_at="epoch", mode="train")

    def update(self, strategy: Any) -> None:
        nll = cross_entropy(strategy.mb_output.detach(), strategy.mb_y)
        self._metric.update(nll, patterns=len(strategy.mb_y))

    def __str__(self) -> str:
        return "NLL_Epoch"


class _TensorBoard(TensorboardLogger):
    def __init__(self, folder: Path, name: str, spec: Mapping[str, Any], run: ContinualRun) -> None:
        self.folder = folder / "tensorboard"
        # What an interrupted run logged beyond its checkpoint is hidden: it is logged again.
        self.first_step = run.iterations + 1 if run.rows else 0
        with _disk(self.folder):
            super().__init__(self.folder)
            if not run.rows:
                self.writer.add_text("spec", _as_markdown(name, spec), 0)

    def _make_writer(self, tb_log_dir: Any, filename_suffix: str) -> SummaryWriter:
        return SummaryWriter(
            tb_log_dir, filename_suffix=filename_suffix, purge_step=self.first_step
        )

    def log_single_metric(self, name: str, value: Any, x_plot: int) -> None:
        with _disk(self.folder):
            super().log_single_metric(name, value, x_plot)

    def flush(self) -> None:
        with _disk(self.folder):
            self.writer.flush()

    def close(self, failed: bool) -> None:
        with _disk(self.folder):
            self.writer.close()


class _WandB(WandBLogger):
    """Offline unless $WANDB_MODE says otherwise: `wandb sync` sends it when the user wants it."""

    def __init__(self, folder: Path, name: str, spec: Mapping[str, Any], run: ContinualRun) -> None:
        self.folder = folder / "wandb"
        mode = os.environ.get("WANDB_MODE", "offline")
        if mode != "online":
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        try:
            import wandb
        except ImportError:
            raise UserError("--log wandb: the package is missing; pip install wandb") from None
        params: dict[str, Any] = {
            "id": _identity(self.folder),
            "mode": mode,
            "group": name.rpartition("/")[0],
            "settings": wandb.Settings(console="off", silent=True, disable_git=True),
        }
        if mode == "online":
            params["resume"] = "allow"
        try:
            super().__init__(
                project_name="vcl-radial",
                run_name=name,
                save_code=False,
                config=dict(spec),
                dir=folder,
                params=params,
            )
        except ValidationError as error:  # wandb reads its variables as settings
            fault = error.errors()[0]
            key = "_".join(str(part).upper() for part in fault["loc"])
            raise UserError(f"--log wandb: $WANDB_{key}: {fault['msg']}") from None
        except (wandb.Error, OSError) as error:
            raise UserError(f"--log wandb: {' '.join(str(error).split())}") from None
        self.step, self.exp_count = run.iterations, run.tasks_done

    def log_single_metric(self, name: str, value: Any, x_plot: int) -> None:
        # Avalanche's asks for `wandb.viz`, which newer versions of wandb do not have.
        self.step = x_plot
        if isinstance(value, (int, float)):
            self.wandb.log({name: value}, step=x_plot)

    def flush(self) -> None:
        """Nothing: each line goes to wandb's own process at once."""

    def close(self, failed: bool) -> None:
        self.wandb.finish(exit_code=int(failed))


LOGGERS: Mapping[str, Callable[[Path, str, Mapping[str, Any], ContinualRun], RunLogger]] = {
    "tensorboard": _TensorBoard,
    "wandb": _WandB,
}
"""The loggers there are, by the name that `--log` knows them by."""


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written: {error.strerror or error}; free space, or run without "
            "--log"
        ) from None


def _identity(folder: Path) -> str:
    """A run's id for wandb: made once, kept beside its logs, so that a resumed run keeps it."""
    path = folder / "run-id"
    with _disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            known = path.read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            known = ""
        if not (known.isalnum() and known.isascii()):
            known = secrets.token_hex(6)  # not of the run's random numbers
            path.write_text(known + "\n", encoding="ascii")
    return known


def _as_markdown(name: str, spec: Mapping[str, Any]) -> str:
    import tomli_w

    lines = tomli_w.dumps(dict(spec)).splitlines()
    return "\n".join([f"# {name}", "", *(f"    {line}" for line in lines)])
