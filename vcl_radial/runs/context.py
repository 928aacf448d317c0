"""The context of runs: device, folders and processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from vcl_radial.runs.peers import ALONE, Peers

if TYPE_CHECKING:
    from vcl_radial.runs.folder import RunFolder
    from vcl_radial.runs.training import Step

Log: TypeAlias = "Callable[[Step], None]"
"""Logs the scalars of a step."""

Logger: TypeAlias = "Callable[[RunFolder[Any], int], AbstractContextManager[Log]]"
"""Opens the log of a run in its folder.

The number is that of training steps before the first one to log. It raises `UserError` if a package
is missing or the folder cannot be written. Worker processes import it by its name.
"""


@dataclass(frozen=True)
class RunContext:
    """Where a run computes, reads and writes.

    Attributes:
        out: the folder of all runs.
        data_dir: the folder of the data; None for the default folders.
        device: "cpu" or "cuda".
        threads: number of threads of one run.
        log: loggers (`vcl_radial.integrations.loggers`) by the names of their folders.
        command: the command line, to be stored with the results.
        keep_model: whether finished runs keep their models.
        keep_points: whether these hold the training points that a method stores.
        peers: this process among those that train a run together.
    """

    out: Path
    data_dir: Path | None = None
    device: str = "cpu"
    threads: int = 1
    log: Mapping[str, Logger] = field(default_factory=dict)
    command: str | None = None
    keep_model: bool = True
    keep_points: bool = True
    peers: Peers = ALONE
