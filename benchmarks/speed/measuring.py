"""Measure sections, print their tables and write the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks import speed
from benchmarks.speed import page, setting
from benchmarks.speed.data import fashion_or_noise
from benchmarks.speed.page import Measured
from benchmarks.speed.sections import sections
from benchmarks.speed.setting import Record, Setting
from vcl_radial import processor
from vcl_radial.described import module_of
from vcl_radial.quiet import quiet
from vcl_radial.reporting import record
from vcl_radial.reporting.figures import save
from vcl_radial.runs import environment
from vcl_radial.runs.folder import check_page, make_folder, write_atomically

_PEERS = ("bayesian-torch", "torch-uncertainty", "tyxe", "pyro-ppl", "py-spy")


def measure_all(
    names: Sequence[str],
    to: Path,
    *,
    repeats: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "cpu",
) -> None:
    """Measure sections, and with each draw table, page and figures of all that were measured.

    Args:
        names: of sections.
        to: the folder for a file per section, `speed.csv`, `README.md` and the figures; sections
            that were measured before stay.
        repeats: rounds that count; None for as many as the sizes say.
        quick: a coarse look in some minutes.
        data_dir: where Fashion-MNIST lies; noise of its shape is taken where it is nowhere.
        device: "cpu" (one thread) or "cuda".

    Raises:
        UserError: the data cannot be read or the result cannot be written.
    """
    processor.prepare(threads=1)
    torch.manual_seed(0)
    sizes = setting.QUICK if quick else setting.FULL
    # Before anything is written: the page itself may lie in the checkout whose state this reports.
    environment = _environment(device)
    command = " ".join(
        ["python -m benchmarks.speed", *names]
        + ([f"--repeats {repeats}"] if repeats else [])
        + (["--quick"] if quick else [])
        + ([f"--device {device}"] if device != "cpu" else [])
    )
    with TemporaryDirectory() as scratch, quiet():
        images = fashion_or_noise(data_dir, Path(scratch), sizes.train_images, sizes.test_images)
        shared = Setting(sizes, repeats or sizes.repeats, images, Path(scratch), device)
        make_folder(to)  # now, not when minutes have been measured
        check_page(to / "README.md", [f"{name}.json" for name in sections()])
        print(f"data: {images.description}")
        for name in names:
            print(f"\n{name}: {sections()[name]}", flush=True)
            result = _module(name).measure(shared)
            print(page.to_text(result.rows, result.notes), end="", flush=True)
            of_section = Record(result.rows, result.notes, command, images.description, environment)
            record.write(to, name, of_section)
            files = _write_page(to)
    print(f"\n{to / 'README.md'}, " + ", ".join(["speed.csv", *files]))


def read(folder: Path) -> dict[str, Record]:
    """The records of all sections that a folder holds; a damaged one is reported and left out."""
    return record.read(folder, sections(), Record, "python -m benchmarks.speed")


def _write_page(to: Path) -> list[str]:
    """Table, page and figures of all that the folder holds; the figures' files."""
    records = read(to)
    measured = with_pictures(records)
    for of in measured.values():
        for picture in of.pictures:
            save(picture.draw(of.record.rows), to / picture.name)
    write_atomically(to / "speed.csv", page.to_csv(records))
    write_atomically(to / "README.md", page.to_markdown(measured))
    return [f"{picture.name}.png" for of in measured.values() for picture in of.pictures]


def with_pictures(records: Mapping[str, Record]) -> dict[str, Measured]:
    """Sections with the pictures that their rows can be drawn as."""
    return {
        name: Measured(
            sections()[name],
            of_section,
            [p for p in _module(name).PICTURES if p.drawn(of_section.rows)],
        )
        for name, of_section in records.items()
    }


def _module(section: str) -> Any:
    return import_module(module_of(speed.__name__, section))


def _environment(device: str) -> dict[str, Any]:
    described = environment.describe(environment.device_name(device), torch.get_num_threads())
    for package in _PEERS:
        try:
            described["packages"][package] = version(package)
        except PackageNotFoundError:
            described["packages"][package] = None
    return described
