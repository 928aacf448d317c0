"""Compute figures, and write their pictures, numbers and pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import process_time

import torch

from reports.papers import page
from reports.papers.analysis import Analysis, Record, Setting
from reports.papers.catalogue import figures
from vcl_radial.files.atomic import gzipped
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.reporting import record
from vcl_radial.reporting.figures import save
from vcl_radial.reporting.figures.drawing import to_csv
from vcl_radial.runs import environment
from vcl_radial.runs.folder import check_page, make_folder, not_written, write_atomically
from vcl_radial.system import processor
from vcl_radial.system.quiet import quiet


def compute_all(names: Sequence[str], to: Path | None, setting: Setting) -> None:
    """Compute figures one after the other; each figure is written before the next one begins.

    Args:
        names: names of figures.
        to: the folder for NAME.png, .svg, .csv.gz and .json, and `README.md` about all figures in
            it; figures that were computed before stay. None for the folder of each figure's page.
        setting: the setting of all figures, with the text of the command.

    Raises:
        UserError: the data cannot be read or a result not written.
        Diverged: a loss is no longer a finite number.
    """
    processor.prepare(threads=1)
    # Before anything is written: the page may lie in the checkout whose state is recorded.
    described = environment.describe("cpu", 1)
    pages = figures()
    folders = {name: to or pages[name].folder for name in names}
    for folder in dict.fromkeys(folders.values()):
        make_folder(folder)
        check_page(folder / "README.md", [f"{figure}.json" for figure in pages])
    for name, folder in folders.items():
        print(f"{name}: {pages[name].figures[name]}", flush=True)
        started = process_time()
        done = compute(name, setting)
        print(page.to_text(done.claims), flush=True)
        _write(folder / name, done)
        seconds = process_time() - started
        entry = Record.of(
            done, command=setting.command or "", seconds=seconds, environment=described
        )
        record.write(folder, name, entry)
        write_atomically(folder / "README.md", page.to_markdown(read(folder)))
        print(f"  {folder / name}.png, .svg, .csv.gz\n", flush=True)
    for folder in dict.fromkeys(folders.values()):
        print(folder / "README.md")


def compute(name: str, setting: Setting) -> Analysis:
    """Compute one figure with isolated random numbers, independent of earlier figures."""
    with quiet(), seeded_rng(setting.seed, torch.device("cpu")):
        done: Analysis = figures()[name].modules[name].analyse(setting)
    return done


def read(folder: Path) -> dict[str, Record]:
    """The records of all figures that a folder holds; a damaged one is reported and left out."""
    return record.read(folder, figures(), Record, "python -m reports")


def _write(stem: Path, done: Analysis) -> None:
    try:
        save(done.figure, stem)
    except OSError as error:
        raise not_written(stem.with_suffix(".png"), error) from None
    write_atomically(stem.with_suffix(".csv.gz"), gzipped(to_csv(done.curves)))
