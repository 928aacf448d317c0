"""What the run machine asks of a track: to make runs, to carry them out, and for their scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.settings import validated
from vcl_radial.runs.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.runs.finished import FinishedRun
    from vcl_radial.runs.sections import Section
    from vcl_radial.runs.training import Lanes, Training

Direction: TypeAlias = Literal["maximize", "minimize"]

SCORED_ON = "validation"
"""The data that every run of every sweep is scored on: never the test data."""


@dataclass(frozen=True)
class Objective:
    """A score that can be searched for: which way is better, and what it is called on an axis."""

    direction: Direction
    words: str


@dataclass(frozen=True)
class Step:
    """How far a run has come.

    Attributes:
        done: steps that are done and stored.
        words: what it is at.
        score: after a step that is just done: in per cent, the higher the better.
        epoch: epochs done.
        epochs: of the whole run.
        news: a line for the terminal, where there is something to say.
        start: lines on what a run starts with, shown once for each method.
        scalars: what a logger shows, by name.
        at: training steps made so far, where a logger puts the scalars.
    """

    done: int
    words: str
    score: float | None = None
    epoch: int = 0
    epochs: int = 0
    news: str | None = None
    start: Sequence[str] = ()
    scalars: Mapping[str, float] = field(default_factory=dict)
    at: int = 0


R = TypeVar("R", bound=RunSpec)


class Track(ABC, Generic[R]):
    """A kind of benchmark: what the run machine, sweeps and reports ask of it.

    A track is a folder `vcl_radial/tracks/NAME` whose `track.py` names its class `TRACK`, or a
    class of a user's own, which a benchmark names by `track = "package.module:Class"`.

    Attributes:
        spec: of its runs; names the track and the table of its data.
        methods: what is run where neither the command nor the benchmark names any.
        variant_keys: keys of the data in which runs of one benchmark differ, such as its sets. A
            report has them together, and settings that were chosen for each seed as one method.
        search_keys: keys of the data that make a search shorter: what it found runs without them.
        step: what a run is stored after, and may be given up after.
        objectives: of `score`; first the one that is searched for where none is named. It is in
            per cent, and has a chance level.
        worker_modules: that a worker imports before its first step.
        has_lanes: whether runs of one shape can be trained together.
        lanes: at most so many of them, where nobody says how many; a GPU has more.
        counts: what `epochs` counts.
        curves: the name of the figure of its report that shows scores over time.
        has_scores_between: whether `scores_so_far` has a score before the last step.
        has_peers: whether the processes of `torchrun` can train a run together.
        uses_all_cores: whether fewer runs than cores share them all; of others each has one.
        devices: that it can compute on.
    """

    spec: ClassVar[type[RunSpec]]
    methods: ClassVar[Sequence[str]]
    variant_keys: ClassVar[Sequence[str]] = ()
    search_keys: ClassVar[Sequence[str]] = ()
    step: ClassVar[str]
    objectives: ClassVar[Mapping[str, Objective]]
    worker_modules: ClassVar[Sequence[str]] = ("vcl_radial.runs.attempt",)
    has_lanes: ClassVar[bool] = False
    lanes: ClassVar[int] = 1
    counts: ClassVar[str] = "epochs"
    curves: ClassVar[str] = "in-sequence"
    has_scores_between: ClassVar[bool] = True
    has_peers: ClassVar[bool] = False
    uses_all_cores: ClassVar[bool] = False
    devices: ClassVar[Sequence[str]] = ("cpu", "cuda")

    @property
    def name(self) -> str:
        """As a benchmark names it."""
        return self.spec.TRACK

    @property
    def objective(self) -> str:
        """The one that is searched for where none is named."""
        return next(iter(self.objectives))

    def variants(
        self, tables: Mapping[str, Any], benchmark: Path | None = None
    ) -> list[Mapping[str, Any]]:
        """The runs of one benchmark, method and seed, as plain tables: one, unless data are many.

        Args:
            tables: of the run, its data as the benchmark has them.
            benchmark: the TOML file, where it is the user's own: data may lie beside it.

        Raises:
            UserError: the tables do not say which.
        """
        return [tables]

    def selection_unit(self, tables: Mapping[str, Any]) -> str:
        """What settings may be chosen for, one by one: the seed, and the data set of several.

        A method's TOML has them under `[chosen.KEY]`; a sweep with `per_seed` finds them.
        """
        return str(tables["seed"])

    def validated(self, tables: Mapping[str, Any]) -> R:
        """A run from plain tables, such as its `settings`.

        Raises:
            UserError: a key is unknown or a value impossible; it names the key and the mend.
        """
        content = {key: value for key, value in tables.items() if key != "track"}
        where = f"{tables.get('benchmark')} x {tables.get('method')}"
        run: R = validated(self.spec, content, where)  # type: ignore[assignment]
        return run

    def check_runs(self, runs: Sequence[R]) -> None:
        """See what can be known to be wrong with runs without their data.

        Raises:
            UserError: something is.
        """

    def check_files(self, runs: Sequence[R], data_dir: Path | None) -> None:
        """See that the files of the runs' data are there, before anything heavy is imported.

        Raises:
            UserError: some are not.
        """

    def on_data(self, run: R, data_dir: Path | None) -> R:
        """A run with the checksum of its data, where these are the user's own.

        Raises:
            UserError: they cannot be read.
        """
        return run

    def check_data(self, runs: Sequence[R], data_dir: Path | None) -> None:
        """Load the data of runs once, and make each method: one message for all, and one download.

        Raises:
            UserError: data are missing or damaged, or a method cannot be made with its options.
        """

    @abstractmethod
    def open(self, run: R, place: RunContext, report: Callable[[Step], None]) -> Training:
        """A run in progress at its start: its data are loaded, its network and method are made.

        Args:
            run: to be trained.
            place: where.
            report: called between steps; what it raises leaves the run resumable.

        Raises:
            UserError: something the user can mend.
        """

    def scores_so_far(self, folder: RunFolder[R]) -> dict[int, float]:
        """What `Step.score` was after each step, of a run that is finished or not.

        Raises:
            UserError: its checkpoint is damaged.
        """
        return {}

    @abstractmethod
    def score(self, folder: RunFolder[R], objective: str) -> float | None:
        """A score of a finished run; None if it is not defined."""

    def chance(self, folder: RunFolder[R]) -> float | None:
        """What the first of the objectives would be without training, in per cent."""
        return None

    def split_of(self, seed: int) -> dict[str, Any]:
        """The key that holds out other validation data, and the same test data, for each seed.

        Empty where other validation data are other test data too.
        """
        return {}

    def epochs(self, run: R) -> int:
        """How many epochs a run has, as far as is known before it starts."""
        return 0

    @abstractmethod
    def read(self, path: Path, environment: Mapping[str, Any]) -> Mapping[str, pd.DataFrame]:
        """The tables of a finished run's folder.

        Args:
            path: of the folder.
            environment: its `environment.json`.

        Raises:
            DataError: one is damaged; the message begins with the name of its file.
        """

    def scores(self, run: FinishedRun) -> pd.DataFrame:
        """Every score of a finished run, one a row; the first table of `read` that has scores.

        Returns:
            The columns `metric, value`, before them what tells scores apart: `after` how many
            steps, on which `task` or `part`, as far as it applies. Rows are in the order of steps.
        """
        import pandas as pd

        having = (table for table in run.tables.values() if {"metric", "value"} <= {*table})
        return next(having, pd.DataFrame(columns=["metric", "value"])).copy()

    def summary(self, runs: Sequence[FinishedRun]) -> pd.DataFrame:
        """Mean and standard error over seeds of the scores after the last step.

        Returns:
            The columns `method`, those of `scores` that tell scores apart, and `metric, seeds,
            mean, standard_error`.
        """
        import pandas as pd

        from vcl_radial.metrics import mean_and_standard_error

        last = []
        for run in runs:
            table = self.scores(run).assign(method=run.method)
            if "after" in table:
                table = table[table["after"] == table["after"].iloc[-1]]
            last.append(table)
        scores = pd.concat(last)
        apart = [name for name in scores.columns if name not in ("method", "metric", "value")]
        keys = ["method", *apart, "metric"]
        rows = [
            (*key, len(group), *mean_and_standard_error(group["value"]))
            for key, group in scores.groupby(keys, sort=False, dropna=False)
        ]
        return pd.DataFrame(rows, columns=[*keys, "seeds", "mean", "standard_error"])

    @abstractmethod
    def sections(self, runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
        """What a report shows of the finished runs of one benchmark, in the order of methods.

        Args:
            runs: with the tables that `read` gave.
            data_dir: where the data lie, for tracks that show some of them.

        Raises:
            DataError: the tables do not fit together.
        """

    def evidence(self, runs: Sequence[FinishedRun]) -> Mapping[str, str]:
        """What is committed of the finished runs of one benchmark beside the tables of `read`.

        Returns:
            The texts of CSV files by name; no report needs them.

        Raises:
            DataError: a table is damaged.
        """
        return {}

    def batches(self, runs: Sequence[R], lanes: int) -> list[list[R]]:
        """Runs that can go together, at most so many, in the order of the first of each batch."""
        return [[run] for run in runs]

    def open_together(
        self, runs: Sequence[R], place: RunContext, report: Callable[[int, Step], None]
    ) -> Lanes:
        """A batch in progress at its start; `report` is called between steps with the lane."""
        raise NotImplementedError


AnyTrack: TypeAlias = Track[Any]
