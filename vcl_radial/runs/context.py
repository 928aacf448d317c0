"""The context of runs: device, folders and processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vcl_radial.runs.peers import ALONE, Peers


@dataclass(frozen=True)
class RunContext:
    """Where a run computes, reads and writes.

    Attributes:
        out: the folder of all runs.
        data_dir: the folder of the data; None for the default folders.
        device: "cpu" or "cuda".
        threads: number of threads of one run.
        log: loggers to attach, by their names in `vcl_radial.runs.loggers`.
        command: the command line, to be stored with the results.
        peers: this process among those that train a run together.
    """

    out: Path
    data_dir: Path | None = None
    device: str = "cpu"
    threads: int = 1
    log: tuple[str, ...] = ()
    command: str | None = None
    peers: Peers = ALONE
