"""`vcl-radial analyse`: carry analyses out, and write pictures, numbers and the page."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import process_time

import torch

from vcl_radial.papers import page, record
from vcl_radial.papers.analysis import Analysis, Setting
from vcl_radial.papers.names import ANALYSES
from vcl_radial.papers.record import Record
from vcl_radial.predict import own_randomness
from vcl_radial.report.figures import save
from vcl_radial.runs import environment
from vcl_radial.runs.folder import make_folder, not_written, write_atomically


def analyse_all(names: Sequence[str], to: Path, setting: Setting, command: str) -> None:
    """Carry analyses out one after the other; what is done is written before the next begins.

    Args:
        names: of `ANALYSES`.
        to: the folder for NAME.png, .svg, .csv and .json, and `README.md` about all that it holds;
            analyses that were done before stay.
        setting: what they are told.
        command: in words, for the page.

    Raises:
        UserError: the data cannot be read or the result cannot be written.
        Diverged: a loss is no longer a finite number.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    # Before anything is written: the page itself may lie in the checkout whose state this tells.
    described = environment.describe("cpu", 1)
    make_folder(to)
    for name in names:
        print(f"{name}: {ANALYSES[name]}", flush=True)
        started = process_time()
        done = carry_out(name, setting)
        print(page.to_text(done.claims), flush=True)
        _write(to, name, done)
        found = Record.of(done, command, process_time() - started, described)
        record.write(to, name, found)
        write_atomically(to / "README.md", page.to_markdown(record.read(to)))
        print(f"  {to / name}.png, .svg, .csv\n", flush=True)
    print(to / "README.md")


def carry_out(name: str, setting: Setting) -> Analysis:
    """One analysis, on randomness of its own: the same whatever came before it."""
    module = import_module(f"vcl_radial.papers.{name.replace('-', '_')}")
    with own_randomness(setting.seed, torch.device("cpu")):
        done: Analysis = module.analyse(setting)
    return done


def _write(to: Path, name: str, done: Analysis) -> None:
    try:
        save(done.figure, to / name)
    except OSError as error:
        raise not_written(to / f"{name}.png", error) from None
    write_atomically(to / f"{name}.csv", page.to_csv(done.curves))
