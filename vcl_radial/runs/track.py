"""The interface of a track: make runs, carry them out, and read their scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from vcl_radial.errors import UserError
from vcl_radial.metrics import METRICS
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.settings import validated
from vcl_radial.runs.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.models.model import Model
    from vcl_radial.models.table import TableModel
    from vcl_radial.reporting.blocks import Section
    from vcl_radial.runs.finished import Spec
    from vcl_radial.runs.training import Lanes, Step, Training

Direction: TypeAlias = Literal["maximize", "minimize"]

SCORED_ON = "validation"
"""The data on which every run of a sweep is scored: never the test data."""


@dataclass(frozen=True)
class Objective:
    """A score that a sweep can optimise: the better direction, and the label of its axis."""

    direction: Direction
    label: str


@dataclass(frozen=True)
class Cost:
    """What one run would cost; None for what is not known.

    Attributes:
        work: what the run does, such as "1,200 steps of 256".
        seconds: seconds of one core, or of all cores or the GPU where a run uses these.
        memory: peak memory of its process in bytes.
        disk: bytes of the model that its folder keeps.
        notes: lines about its data.
    """

    work: str
    seconds: float | None = None
    memory: float | None = None
    disk: float | None = None
    notes: Sequence[str] = ()


def objectives(of: str) -> dict[str, Objective]:
    """The metrics of a kind (see `vcl_radial.metrics.Metric.of`) that have a better direction."""
    return {
        name: Objective("maximize" if metric.better == "higher" else "minimize", metric.heading)
        for name, metric in METRICS.items()
        if metric.of == of and metric.better is not None
    }


R = TypeVar("R", bound=RunSpec)


class Track(ABC, Generic[R]):
    """A kind of benchmark, as the run machine, sweeps and reports use it.

    A track is a folder `vcl_radial/tracks/NAME` whose `track.py` names its class `TRACK`, or a
    user's class, which a benchmark names by `track = "package.module:Class"`.

    Attributes:
        spec: the class of its run specs; it names the track and the table of the data.
        methods: default methods of a benchmark that names none.
        variant_keys: keys of the data in which runs of one benchmark differ, such as its sets. A
            report shows them together; settings chosen per seed count as one method.
        search_keys: keys of the data that make a search shorter; the best recipes run without them.
        step: the word for a step, after which a run is stored and may be pruned.
        objectives: the objectives of `score`. The first is the default of a sweep; it is in per
            cent and has a chance level.
        worker_modules: modules that a worker imports before its first step.
        has_lanes: whether runs of one shape can be trained together.
        lanes: default number of lanes on a CPU; a GPU has more.
        counts: the unit that `epochs` counts.
        curves: the name of the figure of its report that shows scores over time.
        has_scores_between: whether `scores_so_far` has a score before the last step.
        has_peers: whether the processes of `torchrun` can train a run together.
        uses_all_cores: whether fewer runs than cores use all cores; otherwise a run uses one.
        devices: devices on which the track can compute.
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
        """The name of the track in a benchmark."""
        return self.spec.TRACK

    @property
    def objective(self) -> str:
        """The default objective of a sweep."""
        return next(iter(self.objectives))

    def variants(
        self, tables: Mapping[str, Any], benchmark: Path | None = None
    ) -> list[Mapping[str, Any]]:
        """The runs of one benchmark, method and seed as plain tables: one per data set.

        Args:
            tables: the tables of the run, with the data as the benchmark names them.
            benchmark: the TOML file of a user's benchmark; data may lie beside it.

        Raises:
            UserError: the tables name no data set.
        """
        return [tables]

    def selection_unit(self, tables: Mapping[str, Any]) -> str:
        """The key of the unit for which settings can be chosen: the seed, with the data set.

        A method's TOML holds the settings under `[chosen.KEY]`; a sweep with `per_seed` makes it.
        """
        return str(tables["seed"])

    def validated(self, tables: Mapping[str, Any]) -> R:
        """Make a run from plain tables, such as its `settings`.

        Raises:
            UserError: a key is unknown or a value impossible; the message names the key and the
                fix.
        """
        content = {key: value for key, value in tables.items() if key != "track"}
        where = f"{tables.get('benchmark')} x {tables.get('method')}"
        run: R = validated(self.spec, content, where)  # type: ignore[assignment]
        return run

    def check_runs(self, runs: Sequence[R]) -> None:
        """Check runs as far as this is possible without their data; seeds of one spec count once.

        Raises:
            UserError: runs have faults; the message names the methods of each.
        """
        methods: dict[str, dict[str, None]] = {}
        for run in {(run.method, run.digest()): run for run in runs}.values():
            try:
                run.check()
            except UserError as error:
                methods.setdefault(str(error), {})[run.method] = None
        if methods:
            raise UserError("; ".join(f"{', '.join(m)}: {fault}" for fault, m in methods.items()))

    def check_data(self, runs: Sequence[R], data_dir: Path | None) -> None:
        """Load the data of runs once and make each method, for one message and one download.

        Raises:
            UserError: data are missing or damaged, or a method cannot be made with its options.
        """

    @abstractmethod
    def open(self, run: R, context: RunContext, report: Callable[[Step], None]) -> Training:
        """Start a run: load its data, make its network and method.

        Args:
            run: the run to train.
            context: device and folders of the run.
            report: called between steps; if it raises, the run stays resumable.

        Raises:
            UserError: a fault that the user can fix.
        """

    def scores_so_far(self, folder: RunFolder[R]) -> dict[int, float]:
        """The `Step.score` after each step of a finished or unfinished run.

        Raises:
            UserError: the checkpoint is damaged.
        """
        return {}

    @abstractmethod
    def score(self, folder: RunFolder[R], objective: str) -> float | None:
        """A score of a finished run; None if it is not defined."""

    def chance(self, folder: RunFolder[R]) -> float | None:
        """The first objective without training (the chance level), in per cent."""
        return None

    def split_of(self, seed: int) -> dict[str, Any]:
        """The key that holds out other validation data for each seed, with the same test data.

        It is empty where other validation data would also change the test data.
        """
        return {}

    def epochs(self, run: R) -> int:
        """The number of epochs of a run, as far as it is known before the start."""
        return 0

    def costs(
        self, groups: Sequence[Sequence[R]], data_dir: Path | None, device: str
    ) -> Iterable[Cost]:
        """What one run of each group would cost, for `run --dry-run`; no run is trained.

        Args:
            groups: runs that differ only in the seed.
            data_dir: the folder of the data.
            device: "cpu" or "cuda".

        Raises:
            UserError: the data cannot be read.
        """
        return [Cost(f"{self.epochs(group[0]):,} {self.counts}") for group in groups]

    @abstractmethod
    def read(self, path: Path, environment: Mapping[str, Any]) -> Mapping[str, pd.DataFrame]:
        """Read the tables of a finished run.

        Args:
            path: the folder of the run.
            environment: the content of its `environment.json`.

        Raises:
            DataError: a table is damaged; the message begins with the name of its file.
        """

    def scores(self, run: FinishedRun) -> pd.DataFrame:
        """Every score of a finished run, one per row: the first table of `read` with scores.

        Returns:
            The columns `metric, value`, and as far as they apply `after` (number of steps), `task`
            (from 1) and `part`; further columns may identify a score. Rows are in the order of
            steps. `vcl_radial.reporting.scores` completes the columns.
        """
        import pandas as pd

        tables = (table for table in run.tables.values() if {"metric", "value"} <= {*table})
        return next(tables, pd.DataFrame(columns=["metric", "value"])).copy()

    @abstractmethod
    def sections(self, runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
        """The sections of a report of the finished runs of one benchmark, in order of methods.

        Args:
            runs: finished runs with the tables of `read`.
            data_dir: the folder of the data, for tracks that show examples.

        Raises:
            DataError: the tables contradict each other.
        """

    def evidence(self, runs: Sequence[FinishedRun]) -> Mapping[str, str]:
        """Further CSV files of one benchmark's finished runs, to be committed.

        Returns:
            The texts of CSV files by name; reports do not need them.

        Raises:
            DataError: a table is damaged.
        """
        return {}

    def kept_model(self, training: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The card and the state of the model of a finished training; None: none is kept."""
        return None

    def restored_model(
        self, run: R, card: Mapping[str, Any], state: dict[str, Any]
    ) -> Model | TableModel:
        """The model of the card and the state of `kept_model`.

        Raises:
            UserError: the method cannot be made, or the state does not fit it.
        """
        raise NotImplementedError

    def new_task(self, model: Any, data: Path) -> str:
        """The checksum of the data of one more task for a kept model.

        Raises:
            DataError: the data are missing, damaged or do not fit the model.
        """
        raise UserError(f"a model of {self.name} learns no further task")

    def batches(self, runs: Sequence[R], lanes: int) -> list[list[R]]:
        """Batches of at most `lanes` runs that can train together, ordered by their first run."""
        return [[run] for run in runs]

    def open_together(
        self, runs: Sequence[R], context: RunContext, report: Callable[[int, Step], None]
    ) -> Lanes:
        """Start a batch of runs; `report` is called between steps with the lane and the step."""
        raise NotImplementedError


AnyTrack: TypeAlias = Track[Any]


@dataclass(frozen=True)
class FinishedRun:
    """The content of the folder of a finished run.

    Attributes:
        path: the folder.
        track: the track of the run.
        spec: the resolved spec.
        environment: the content of `environment.json`.
        tables: the tables that the track reads.
        benchmark: name of the benchmark, with the folder of a user's data and the data of the
            scores unless these are the test data; if runs of one name differ in their data, the
            difference is added.
        method: name of the method; if runs of one name differ in their recipes or in a user's code,
            the difference is added.
    """

    path: Path
    track: AnyTrack
    spec: Spec
    environment: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    benchmark: str
    method: str
