"""The files in the folder of a finished run, as reports read them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Written(BaseModel):
    """The keys that a report reads from a file; the file may hold more."""

    model_config = ConfigDict(extra="allow", strict=True)


class Spec(Written):
    """The spec of a run; the table of its data is `stream` or `data`."""

    benchmark: Name
    method: Name
    seed: int
    evaluate_on: str = "test"
    recipe: dict[str, Any]
    code: str | None = None
    stream: dict[str, Any] = {}
    data: dict[str, Any] = {}
    updates: list[dict[str, Any]] = []


class Environment(Written):
    """The environment that computed a run's numbers; None where it was not recorded."""

    device: str
    processor: str
    threads: int
    packages: dict[str, str | None]
    seconds: Any
    finished: str | None = None
    commit: str | None = None
    command: str | None = None
