"""Measure sections, print their tables and write the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.speed import page, setting
from benchmarks.speed.data import fashion_or_noise
from benchmarks.speed.setting import Record, Row, Setting
from reports import pages
from vcl_radial import native
from vcl_radial.errors import UserError
from vcl_radial.reporting import markdown
from vcl_radial.reporting.figures import save
from vcl_radial.runs import environment
from vcl_radial.runs.folder import check_page, make_folder, write_atomically
from vcl_radial.system import processor
from vcl_radial.system.quiet import quiet

PROGRAM = "python -m benchmarks.speed"

SECTIONS = {
    name: import_module(f"benchmarks.speed.{name}")
    for name in (
        *("convolutions", "growth", "kl", "lanes", "loops", "methods", "models"),
        *("peers", "prediction", "regression", "run", "samples", "step"),
    )
}
TITLES = {name: page.title_and_notes(section)[0] for name, section in SECTIONS.items()}

_PEERS = ("bayesian-torch", "torch-uncertainty", "tyxe", "pyro-ppl")


def measure_all(
    names: Sequence[str],
    to: Path,
    *,
    repeats: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "cpu",
) -> None:
    """Measure sections, and after each write table, page and figures of all measured sections.

    Args:
        names: names of the sections.
        to: the folder for a file per section, `speed.csv`, `README.md` and the figures; earlier
            sections stay.
        repeats: number of rounds that count; None for the default of the sizes.
        quick: whether to measure coarsely, in a few minutes.
        data_dir: folder of Fashion-MNIST; without it, noise of its shape is used.
        device: "cpu" (one thread) or "cuda".

    Raises:
        UserError: the data cannot be read or the result cannot be written.
    """
    processor.prepare(threads=1)
    torch.manual_seed(0)
    sizes = setting.QUICK if quick else setting.FULL
    # Before anything is written, because the page may lie in the checkout that this describes.
    described = environment.describe(environment.device_name(device), 1)
    versions = {package.name.lower(): package.version for package in distributions()}
    described["packages"] |= {name: versions.get(name) for name in _PEERS}
    reason = "it works on a CPU" if device == "cuda" else native.unavailable()
    described["compiled pass"] = f"not in use ({reason})" if reason else "in use"
    options = (f" --repeats {repeats}" if repeats else "") + " --quick" * quick
    options += f" --device {device}" * (device != "cpu")
    with TemporaryDirectory() as folder, quiet():
        scratch = Path(folder)
        images = fashion_or_noise(data_dir, scratch, sizes.train_images, sizes.test_images)
        shared = Setting(sizes, repeats or sizes.repeats, images, scratch, device)
        make_folder(to)  # now, not after minutes of measurement
        check_page(to / "README.md", [f"{name}.json" for name in SECTIONS])
        print(f"data: {images.description}")
        for name in names:
            print(f"\n{name}: {TITLES[name]}", flush=True)
            rows = SECTIONS[name].measure(shared)
            print(page.to_text(rows), end="", flush=True)
            command = f"{PROGRAM} {name}{options}"
            measured = Record(rows, command, images.description, described)
            write_atomically(to / f"{name}.json", json.dumps(asdict(measured), indent=1) + "\n")
            files = write_page(to)
    print(f"\n{to / 'README.md'}, " + ", ".join(files))


def read(folder: Path) -> dict[str, Record]:
    """The records of all sections that a folder holds.

    Raises:
        DataError: a record is damaged.
    """
    stored = pages.records(folder, SECTIONS).items()
    return {name: Record(**s | {"rows": [Row(*row) for row in s["rows"]]}) for name, s in stored}


def sections(folder: Path) -> dict[str, Any]:
    """The measured sections of a folder, as the template of the page takes them."""
    shown = {}
    for name, record in read(folder).items():
        title, notes = page.title_and_notes(SECTIONS[name])
        tables = [markdown.table(table) for table in page.tables(record.rows)]
        known = {"title": title, "notes": notes, "tables": tables, "record": record}
        shown[name] = known | {"pictures": SECTIONS[name].PICTURES}
    return shown


def write_page(to: Path) -> list[str]:
    """Write table, page and figures of all sections in a folder; return the names of the files.

    Raises:
        UserError: the folder holds no section, or a file cannot be written.
    """
    records = read(to)
    if not records:
        raise UserError(f"{to}: holds no measurement; make one by {PROGRAM}")
    files = ["speed.csv"]
    for name, measured in records.items():
        for picture in SECTIONS[name].PICTURES:
            save(picture.draw(measured.rows), to / picture.name)
            files.append(f"{picture.name}.png")
    write_atomically(to / "speed.csv", page.to_csv(records))
    pages.write([Path(pages.__file__).parent / "speed" / "README.md.jinja"], to)
    return files
