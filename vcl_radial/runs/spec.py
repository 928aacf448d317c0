"""What a run is: benchmark x method x seed, every key validated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_serializer, model_validator
from pydantic import SerializerFunctionWrapHandler as Serialise

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.runs.keys import at_default
from vcl_radial.runs.settings import UNNAMED_TABLE, Settings, digest_of

DEFAULT_TRACK = "continual"
"""Of a benchmark, and of a `spec.toml`, that names no track."""


class RunSpec(Settings):
    """One run, as it stands in the `spec.toml` of its folder; a track adds its two tables.

    Attributes:
        TRACK: the name of its track.
        DATA: the name of the table of its data; the other one is `recipe`.
        FILES: the result files of a finished run, besides `spec.toml` and `environment.json`.
        benchmark: its name.
        method: its name.
        seed: of all randomness, and of what a track chooses by it (a split, a game).
        evaluate_on: the data that it is scored on.
        code: a checksum of the files of what the user has named as `package.module:name`; a command
            fills it in.
    """

    TRACK: ClassVar[str] = DEFAULT_TRACK
    DATA: ClassVar[str] = "data"
    FILES: ClassVar[tuple[str, ...]] = ()

    benchmark: str
    method: str
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    evaluate_on: Literal["test", "validation"] = "test"
    code: str | None = None

    @model_validator(mode="after")
    def _validation_data_exist(self) -> Self:
        data = getattr(self, self.DATA, None)  # a track of a user's may hold none out this way
        if self.evaluate_on == "validation" and getattr(data, "validation", None) == 0:
            raise ValueError(f"evaluate_on = 'validation' needs {self.DATA}.validation above 0")
        return self

    @model_serializer(mode="wrap")
    def _with_track(self, serialise: Serialise) -> dict[str, Any]:
        content: dict[str, Any] = serialise(self)
        return content if self.TRACK == DEFAULT_TRACK else {"track": self.TRACK, **content}

    @property
    def label(self) -> str:
        """What tells it from other runs of one command."""
        return f"{self.method} seed {self.seed}"

    @property
    def result_files(self) -> tuple[str, ...]:
        """The files of its folder that a finished run has at least, the spec among them."""
        return ("spec.toml", *self.FILES, "environment.json")

    def settings(self) -> dict[str, Any]:
        """All keys that were set, as the `spec.toml` of its folder holds them."""
        return self.model_dump(exclude_none=True)

    def digest(self) -> str:
        """A hash of what `spec.toml` holds, but for names that decide no numbers and the seed.

        These names are the method's and that of a folder of data, which may be moved. A key that
        is declared so is left out at its default (`vcl_radial.runs.keys`).
        """
        left_out: dict[str, Any] = {"seed": True, "method": True, self.DATA: {"data_name"}}
        if isinstance(recipe := getattr(self, UNNAMED_TABLE, None), Settings):
            left_out[UNNAMED_TABLE] = at_default(recipe)
        return digest_of(self.model_dump(exclude=left_out, exclude_none=True, mode="json"))[:8]

    def from_outside(self) -> list[Callable[..., Any]]:
        """The classes and functions of the user's that it names.

        Raises:
            UserError: one is not there or cannot be imported.
        """
        return []

    def checksum_of_code(self) -> str | None:
        """That of the files of what `from_outside` gives; None where it gives nothing."""
        with suppress(UserError):  # the run itself will say so, and others go on
            return outside.checksum(*named) if (named := self.from_outside()) else None
        return None
