"""The declaration of a metric: how tables and axes name it, and the function that computes it.

A new metric is a function and the line `@metric(...)` above it:

    @metric("Brier", 3, "lower", "squared error of the probabilities")
    def brier(log_probs: Tensor, labels: Tensor) -> float: ...

A metric of points is computed on every task after every task, and tables show its average over the
tasks. A metric of a run (`of="run"`) is a function of the run's rows in the table of scores, one of
a table's rows (`of="rows"`) of `rows.Predictions`, one of their intervals (`of="intervals"`) of
`rows.Intervals`, one of a game (`of="game"`) of its rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Better = Literal["higher", "lower"]
Of = Literal["points", "run", "rows", "intervals", "game", "cost", "table"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """Name, format and function of a metric.

    Attributes:
        name: the name in the table of scores, and the heading in CSV files.
        heading: the heading of a column, with the unit in brackets.
        decimals: number of printed decimals.
        better: which values are better; None if neither is.
        meaning: a short explanation.
        of: `points` for a function of log-probabilities `[B, C]` and labels `[B]`; `run` for one of
            the rows of a run, `rows` of `Predictions` for a table's rows, `intervals` of
            `Intervals`, which are scored on request, `game` of the rounds of a game; `cost` of a
            run; `table` for values that a track computes.
        function: the function; None if the values are computed with others.
        counted: whether it is a whole number that is equal for all seeds of a method.
        in_bytes: whether it is a number of bytes, which is printed with its unit.
    """

    name: str
    heading: str
    decimals: int
    better: Better | None = None
    meaning: str = ""
    of: Of = "table"
    function: Callable[..., Any] | None = None
    counted: bool = False
    in_bytes: bool = False

    @property
    def column(self) -> str:
        """The heading of a column; an arrow shows the better direction."""
        return self.heading + {"higher": " ↑", "lower": " ↓"}.get(self.better or "", "")

    @property
    def words(self) -> str:
        """The heading without its unit."""
        return self.heading.partition(" (")[0]


METRICS: dict[str, Metric] = {}
"""The declared metrics by name, in the order of tables."""


def declare(name: str, heading: str, decimals: int, *rest: Any, **more: Any) -> None:
    """Declare a metric without a function; the arguments are those of `Metric`."""
    METRICS[name] = Metric(name, heading, decimals, *rest, **more)


def metric(
    heading: str,
    decimals: int,
    better: Better | None = None,
    meaning: str = "",
    *,
    of: Of = "points",
    name: str | None = None,
) -> Callable[[F], F]:
    """Declare the function below as a metric; its name is that of the function by default."""

    def declared(function: F) -> F:
        label = name or function.__name__
        declare(label, heading, decimals, better, meaning, of, function)
        return function

    return declared


declare("training_seconds", "training (s)", 1, "lower", "seconds on one device", "cost")
declare("evaluation_seconds", "evaluation (s)", 1, "lower", "seconds on one device", "cost")
_PARAMETERS = "numbers that the final network trains; a Gaussian weight has two"
declare("parameters", "parameters", 0, None, _PARAMETERS, "cost", counted=True)
_CARRIED = "bytes that a method keeps from task to task: what training has changed of its state"
declare("carried_bytes", "carried", 0, None, _CARRIED, "cost", counted=True, in_bytes=True)
