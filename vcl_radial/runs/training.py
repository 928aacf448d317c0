"""The interface of a run in progress, alone or as a lane of one program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from vcl_radial.errors import Diverged


@dataclass(frozen=True)
class Step:
    """The progress of a run.

    Attributes:
        done: number of stored steps.
        message: short text for the progress bar.
        score: score after a finished step, in per cent; higher is better.
        epoch: number of finished epochs.
        epochs: number of epochs of the whole run.
        news: a line for the terminal; None without one.
        start: lines about the start of a run, shown once per method.
        scalars: scalars for loggers, by name.
        at: number of training steps so far, the position of the scalars in a log.
    """

    done: int
    message: str
    score: float | None = None
    epoch: int = 0
    epochs: int = 0
    news: str | None = None
    start: Sequence[str] = ()
    scalars: Mapping[str, float] = field(default_factory=dict)
    at: int = 0


class Training(Protocol):
    """A run in progress. All its random numbers come from the seed of the run."""

    def position(self) -> Step:
        """The progress before the next step."""

    def state_dict(self) -> Mapping[str, Any]:
        """Plain tensors and numbers from which the run can resume after the last step."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a state of `state_dict`."""

    def steps(self) -> Iterator[Step]:
        """Train and score the remaining steps; yield after each step, when it can be stored.

        Raises:
            Diverged: the loss stopped being a finite number.
        """

    def files(self) -> Mapping[str, str]:
        """The result files of the finished run by name, without the spec and the environment."""

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        """Plain tensors and numbers to store with the results, by the names of their files."""

    def facts(self) -> Mapping[str, Any]:
        """Further keys of `environment.json`, besides commit, versions and device."""


class Lanes(Protocol):
    """Runs of one shape in progress, trained as one program."""

    @property
    def lanes(self) -> Sequence[Training]:
        """One training per run; `steps` of this class replaces their `steps`."""

    def leave_out(self, lane: int) -> None:
        """Stop a lane."""

    def fault(self, lane: int) -> Diverged | None:
        """Why a lane has ended early, or None; the other lanes continue."""

    def steps(self) -> Iterator[Mapping[int, Step]]:
        """Train the remaining steps; yield the lanes that have finished a step."""


class NonResumableTraining(ABC):
    """A training that is not stored before its end: after an interruption it starts again.

    Args:
        epochs: number of epochs, for the progress bar.
    """

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    @abstractmethod
    def train(self) -> None:
        """Train and score.

        Raises:
            Diverged: the loss stopped being a finite number.
        """

    def position(self) -> Step:
        """The progress at the start."""
        return Step(0, "start", epochs=self.epochs)

    def state_dict(self) -> dict[str, Any]:
        """An empty state, as the training is never stored."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027 - nothing to load
        """Start again."""

    def steps(self) -> Iterator[Step]:
        """Train at once; nothing is yielded, as nothing can be stored."""
        self.train()
        return iter(())

    def kept(self) -> dict[str, Any]:
        """No further tensors."""
        return {}
