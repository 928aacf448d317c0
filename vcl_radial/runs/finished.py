"""What the folder of a finished run holds, for reports and searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.runs.track import AnyTrack

Name = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Written(BaseModel):
    """What a report reads of a file, which may hold more."""

    model_config = ConfigDict(extra="allow", strict=True)


class Spec(Written):
    """What a run was; the table of its data is `stream` or `data`."""

    benchmark: Name
    method: Name
    seed: int
    evaluate_on: str = "test"
    recipe: dict[str, Any]
    code: str | None = None
    stream: dict[str, Any] = {}
    data: dict[str, Any] = {}


class Environment(Written):
    """Where a run's numbers came from; None is what nobody wrote down."""

    device: str
    processor: str
    threads: int
    packages: dict[str, str | None]
    seconds: Any
    finished: str | None = None
    commit: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class FinishedRun:
    """What a run folder holds.

    Attributes:
        path: the folder.
        track: that it is of.
        spec: the resolved spec.
        environment: where the numbers came from, as `environment.json` has it.
        tables: what the track reads of it.
        benchmark: its name, with the folder of a user's own data, and with the data it was scored
            on unless these are the test data; where runs of one name differ in their data, with
            what differs.
        method: its name; where runs of one name differ in their recipes, or in the code of classes
            from outside, with what differs.
    """

    path: Path
    track: AnyTrack
    spec: Spec
    environment: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    benchmark: str
    method: str
