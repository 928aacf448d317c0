"""The spec of a run: benchmark x method x seed, every key validated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_serializer, model_validator
from pydantic import SerializerFunctionWrapHandler as Serialise

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.runs.keys import at_default
from vcl_radial.runs.settings import UNNAMED_TABLE, Settings, digest_of

DEFAULT_TRACK = "continual"
"""The track of a benchmark or a `spec.toml` that names none."""


class Update(Settings):
    """One more task that a kept model learned.

    Attributes:
        parent: checksum of the parent's `model.safetensors`.
        task: name of the task.
        checksum: checksum of the task's data.
        folder: folder of the parent, which may be moved.
        data: path of the task's data, which may be moved.
    """

    parent: str
    task: str
    checksum: str
    folder: str
    data: str


class RunSpec(Settings):
    """The spec of one run, as `spec.toml` in its folder holds it; a track adds two tables.

    Attributes:
        TRACK: the name of the track.
        DATA: the name of the table of the data; the other table is `recipe`.
        FILES: the result files of a finished run, besides `spec.toml` and `environment.json`.
        benchmark: the name of the benchmark.
        method: the name of the method.
        seed: the seed of all random numbers; a track may also select a split or a game by it.
        evaluate_on: the data on which the run is scored.
        code: checksum of the files of a user's classes and functions (`package.module:name`); a
            command fills it in.
        updates: the tasks after those of the benchmark, each learned by a kept model
            (`vcl_radial.runs.updating`); the run learns the last one.
    """

    TRACK: ClassVar[str] = DEFAULT_TRACK
    DATA: ClassVar[str] = "data"
    FILES: ClassVar[tuple[str, ...]] = ()

    benchmark: str
    method: str
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    evaluate_on: Literal["test", "validation"] = "test"
    code: str | None = None
    updates: list[Update] | None = None

    @model_validator(mode="after")
    def _validation_data_exist(self) -> Self:
        data = getattr(self, self.DATA, None)  # a user's track may hold out data in another way
        if self.evaluate_on == "validation" and getattr(data, "validation", None) == 0:
            raise ValueError(f"evaluate_on = 'validation' needs {self.DATA}.validation above 0")
        return self

    @model_serializer(mode="wrap")
    def _with_track(self, serialise: Serialise) -> dict[str, Any]:
        content: dict[str, Any] = serialise(self)
        return content if self.TRACK == DEFAULT_TRACK else {"track": self.TRACK, **content}

    @property
    def label(self) -> str:
        """The label of the run among the runs of one command."""
        return f"{self.method} seed {self.seed}"

    @property
    def result_files(self) -> tuple[str, ...]:
        """The files that the folder of every finished run has, the spec among them."""
        return ("spec.toml", *self.FILES, "environment.json")

    def settings(self) -> dict[str, Any]:
        """All keys with a value, as `spec.toml` holds them."""
        return self.model_dump(exclude_none=True)

    def digest(self) -> str:
        """A hash of `spec.toml` without the seed, and without names that do not change numbers.

        These are the name of the method, and names of folders and files that may be moved. A key
        with `digest="unless default"` is left out at its default (`vcl_radial.runs.keys`).
        """
        left_out: dict[str, Any] = {"seed": True, "method": True, self.DATA: {"data_name"}}
        left_out["updates"] = {"__all__": {"folder", "data"}}
        if isinstance(recipe := getattr(self, UNNAMED_TABLE, None), Settings):
            left_out[UNNAMED_TABLE] = at_default(recipe)
        return digest_of(self.model_dump(exclude=left_out, exclude_none=True, mode="json"))[:8]

    def check(self) -> None:
        """Check that the parts that the spec names exist and fit together, without the data.

        Raises:
            UserError: the spec has a fault.
        """

    def data_facts(self, data_dir: Path | None) -> dict[str, Any]:
        """Keys of the data that a command fills in, such as a checksum of files.

        Raises:
            UserError: the data cannot be read.
        """
        return {}

    def on_data(self, data_dir: Path | None) -> Self:
        """This run with its `data_facts` and the checksum of the user's code.

        A run is repeated when one of them has changed.

        Raises:
            UserError: the data cannot be read.
        """
        update: dict[str, Any] = {"code": self.checksum_of_code()}
        if facts := self.data_facts(data_dir):
            update[self.DATA] = getattr(self, self.DATA).model_copy(update=facts)
        return self.model_copy(update=update)

    def from_outside(self) -> list[Callable[..., Any]]:
        """The user's classes and functions that the spec names.

        Raises:
            UserError: one is missing or cannot be imported.
        """
        return []

    def checksum_of_code(self) -> str | None:
        """The checksum of the files of the user's code; None without such code."""
        with suppress(UserError):  # the run itself will raise it, and other runs continue
            return outside.checksum(*named) if (named := self.from_outside()) else None
        return None
