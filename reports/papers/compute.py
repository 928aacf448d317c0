"""Compute figures, and write their pictures, numbers and pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import process_time

import torch

from reports import pages
from reports.papers.analysis import Analysis, Setting
from reports.papers.catalogue import figures
from vcl_radial.files.atomic import gzipped, not_written
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.reporting.figures import save
from vcl_radial.reporting.figures.drawing import to_csv
from vcl_radial.runs import environment
from vcl_radial.runs.folder import check_page, make_folder, write_atomically
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
    known = figures()
    folders = {name: to or known[name].folder for name in names}
    for folder in dict.fromkeys(folders.values()):
        make_folder(folder)
        check_page(folder / "README.md", [f"{figure}.json" for figure in known])
    for name, folder in folders.items():
        print(f"{name}: {known[name].figures[name]}", flush=True)
        started = process_time()
        done = compute(name, setting)
        for claim in done.claims:
            print(f"  {claim.published}\n    {claim.ours}\n    {claim.conclusion}", flush=True)
        print("\n".join(f"  {note}" for note in done.notes), flush=True)
        _write(folder / name, done)
        seconds = process_time() - started
        origin = {"command": setting.command, "seconds": seconds, "environment": described}
        text = json.dumps(done.findings | origin, indent=1, default=asdict)
        write_atomically(folder / f"{name}.json", text + "\n")
        pages.write([pages.SHARED / "figures.jinja"], folder)
        print(f"  {folder / name}.png, .svg, .csv.gz\n", flush=True)
    for folder in dict.fromkeys(folders.values()):
        print(folder / "README.md")


def compute(name: str, setting: Setting) -> Analysis:
    """Compute one figure with isolated random numbers, independent of earlier figures."""
    with quiet(), seeded_rng(setting.seed, torch.device("cpu")):
        done: Analysis = figures()[name].modules[name].analyse(setting)
    return done


def _write(stem: Path, done: Analysis) -> None:
    try:
        save(done.figure, stem)
    except OSError as error:
        raise not_written(stem.with_suffix(".png"), error) from None
    write_atomically(stem.with_suffix(".csv.gz"), gzipped(to_csv(done.curves)))
