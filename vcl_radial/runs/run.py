"""What the run machine knows of a run, and where it is carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class Run(Protocol):
    """One run: benchmark x method x seed, with a table `recipe` and one of the data."""

    @property
    def benchmark(self) -> str:
        """The name of the benchmark."""

    @property
    def method(self) -> str:
        """The name of the method."""

    @property
    def seed(self) -> int:
        """Of all randomness."""

    @property
    def result_files(self) -> tuple[str, ...]:
        """The files of its folder that a finished run has at least, the spec among them."""

    def settings(self) -> dict[str, Any]:
        """All keys that were set, as the `spec.toml` of its folder holds them."""

    def digest(self) -> str:
        """A hash of all that decides the numbers, but for the seed and the method's name."""

    def from_outside(self) -> list[Callable[..., Any]]:
        """The classes and functions of the user's that it names."""

    def model_dump(self) -> dict[str, Any]:
        """All keys."""


@dataclass(frozen=True)
class Place:
    """Where a run computes, reads and writes.

    Attributes:
        out: the folder of all runs.
        data_dir: where the data lie; None for the usual places.
        device: "cpu" or "cuda".
        threads: of one run.
        log: loggers to attach, by their names in `vcl_radial.tracks.continual.loggers`.
        command: what was asked for, in words, to stand with the results.
    """

    out: Path
    data_dir: Path | None = None
    device: str = "cpu"
    threads: int = 1
    log: tuple[str, ...] = ()
    command: str | None = None
