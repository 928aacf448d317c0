"""Where runs are carried out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vcl_radial.runs.peers import ALONE, Peers


@dataclass(frozen=True)
class RunContext:
    """Where a run computes, reads and writes.

    Attributes:
        out: the folder of all runs.
        data_dir: where the data lie; None for the usual places.
        device: "cpu" or "cuda".
        threads: of one run.
        log: loggers to attach, by their names in `vcl_radial.runs.loggers`.
        command: what was asked for, in words, to stand with the results.
        peers: this process among those that train a run together.
    """

    out: Path
    data_dir: Path | None = None
    device: str = "cpu"
    threads: int = 1
    log: tuple[str, ...] = ()
    command: str | None = None
    peers: Peers = ALONE
