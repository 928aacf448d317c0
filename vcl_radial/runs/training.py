"""What a track gives the run machine: a run in progress, alone or as a lane of one program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from vcl_radial.runs.track import Step

if TYPE_CHECKING:
    from vcl_radial.errors import Diverged


class Training(Protocol):
    """A run in progress. Whatever it draws comes from the seed of its run."""

    def position(self) -> Step:
        """How far it is, before it goes on."""

    def state_dict(self) -> Mapping[str, Any]:
        """Plain tensors and numbers from which it can go on after the last step."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""

    def steps(self) -> Iterator[Step]:
        """Train and score what is left; yield after each step, when it can be stored.

        Raises:
            Diverged: the loss stopped being a finite number.
        """

    def files(self) -> Mapping[str, str]:
        """The result files of the finished run by name, but for the spec and the environment."""

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        """Plain tensors and numbers that stay with the results, by the names of their files."""

    def facts(self) -> Mapping[str, Any]:
        """What stands in `environment.json` besides commit, versions and device."""


class Lanes(Protocol):
    """Runs of one shape in progress, trained as one program."""

    @property
    def lanes(self) -> Sequence[Training]:
        """One for each run. `steps` of a lane is not called: this class has its own."""

    def leave_out(self, lane: int) -> None:
        """Do nothing more in a lane."""

    def fault(self, lane: int) -> Diverged | None:
        """Why a lane has ended early; the others go on."""

    def steps(self) -> Iterator[Mapping[int, Step]]:
        """Train what is left; yield the lanes that have finished a step."""


class NonResumableTraining(ABC):
    """A training that is not stored before it is done: where it was stopped, it starts anew.

    Args:
        epochs: of it, for the progress bar.
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
        """At its start."""
        return Step(0, "start", epochs=self.epochs)

    def state_dict(self) -> dict[str, Any]:
        """Nothing: it is never stored."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # noqa: B027 - nothing to load
        """Start anew."""

    def steps(self) -> Iterator[Step]:
        """All at once; nothing is yielded, for nothing can be stored."""
        self.train()
        return iter(())

    def kept(self) -> dict[str, Any]:
        """Nothing."""
        return {}
