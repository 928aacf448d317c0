"""Measure sections, print their tables and write the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import torch

from benchmarks.speed import (
    command,
    convolutions,
    growth,
    kl,
    lanes,
    methods,
    page,
    peers,
    prediction,
    profile,
    regression,
    run,
    setting,
    step,
)
from benchmarks.speed.data import fashion_or_noise
from benchmarks.speed.pictures import Picture
from benchmarks.speed.setting import Record, Setting
from vcl_radial.reporting import record
from vcl_radial.reporting.figures import save
from vcl_radial.runs import environment
from vcl_radial.runs.folder import check_page, make_folder, write_atomically
from vcl_radial.system import processor
from vcl_radial.system.quiet import quiet

PROGRAM = "python -m benchmarks.speed"

SECTIONS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        *(command, convolutions, growth, kl, lanes, methods),
        *(peers, prediction, profile, regression, run, step),
    )
}
MEASURES = {name: str(of.__doc__).partition("\n")[0].rstrip(".") for name, of in SECTIONS.items()}
"""The function that measures each section."""

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
    """Measure sections, and after each write table, page and figures of all measured sections.

    Args:
        names: names of the sections.
        to: the folder for a file per section, `speed.csv`, `README.md` and the figures; earlier
            sections stay.
        repeats: number of rounds that count; None for the default of the sizes.
        quick: whether to measure coarsely, in some minutes.
        data_dir: folder of Fashion-MNIST; without it, noise of its shape is used.
        device: "cpu" (one thread) or "cuda".

    Raises:
        UserError: the data cannot be read or the result cannot be written.
    """
    processor.prepare(threads=1)
    torch.manual_seed(0)
    sizes = setting.QUICK if quick else setting.FULL
    # Before anything is written, because the page may lie in the checkout that this describes.
    described = environment.describe(environment.device_name(device), torch.get_num_threads())
    described["packages"] |= {package: _version(package) for package in _PEERS}
    typed = " ".join(
        [PROGRAM, *names]
        + ([f"--repeats {repeats}"] if repeats else [])
        + (["--quick"] if quick else [])
        + ([f"--device {device}"] if device != "cpu" else [])
    )
    with TemporaryDirectory() as folder, quiet():
        scratch = Path(folder)
        images = fashion_or_noise(
            data_dir, scratch / "images", sizes.train_images, sizes.test_images
        )
        shared = Setting(sizes, repeats or sizes.repeats, images, scratch, device)
        make_folder(to)  # now, not when minutes have been measured
        check_page(to / "README.md", [f"{name}.json" for name in SECTIONS])
        print(f"data: {images.description}")
        for name in names:
            print(f"\n{name}: {MEASURES[name]}", flush=True)
            result = SECTIONS[name].measure(shared)
            print(page.to_text(result.rows, result.notes), end="", flush=True)
            record.write(
                to, name, Record(result.rows, result.notes, typed, images.description, described)
            )
            files = _write_page(to)
    print(f"\n{to / 'README.md'}, " + ", ".join(["speed.csv", *files]))


def read(folder: Path) -> dict[str, Record]:
    """The records of all sections that a folder holds; a damaged one is reported and left out."""
    return record.read(folder, SECTIONS, Record, PROGRAM)


def page_of(records: Mapping[str, Record]) -> str:
    """The page of all measured sections."""
    return page.to_markdown(records, MEASURES, pictures_of(records))


def pictures_of(records: Mapping[str, Record]) -> dict[str, list[Picture]]:
    """The pictures of each measured section."""
    return {
        name: [picture for picture in SECTIONS[name].PICTURES if picture.drawn(of.rows)]
        for name, of in records.items()
    }


def _write_page(to: Path) -> list[str]:
    """Write table, page and figures of all sections in the folder; return the figures' files."""
    records = read(to)
    files = []
    for name, pictures in pictures_of(records).items():
        for picture in pictures:
            save(picture.draw(records[name].rows), to / picture.name)
            files.append(f"{picture.name}.png")
    write_atomically(to / "speed.csv", page.to_csv(records))
    write_atomically(to / "README.md", page_of(records))
    return files


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
