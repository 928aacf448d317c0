"""`vcl-radial bench`: measure the sections, print their tables and write the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from matplotlib.figure import Figure

from vcl_radial.bench import page, pictures, record, setting
from vcl_radial.bench.data import fashion_or_noise
from vcl_radial.bench.record import Record
from vcl_radial.bench.sections import SECTIONS
from vcl_radial.bench.setting import Result, Row, Setting
from vcl_radial.quiet import quiet
from vcl_radial.report.figures import save
from vcl_radial.runs import environment
from vcl_radial.runs.folder import make_folder, write_atomically

_PEERS = ("bayesian-torch", "torch-uncertainty")
_EPOCH = "One training epoch, {}"
_RATIOS = {
    "step": ("ratio to the floor", _EPOCH),
    "peers": ("ratio to gaussian-vcl", _EPOCH),
    "methods": ("a task of 20 epochs, ratio to naive", "What a method costs: {}"),
    "regression": ("ratio to radial, compiled", "A step of a lane, {}"),
}
_GROWTH = {"growth": "Cost of a training step", "kl": "Cost of the radial KL"}
_TIMES = "times one process"
_STEP_OF_LANES = "A training step of many lanes"
_WORKERS = "Seeds of a run in two worker processes"


def bench(
    sections: Sequence[str],
    to: Path,
    *,
    repeats: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    device: str = "cpu",
) -> None:
    """Measure the sections, and with each draw table, page and figures of all that were measured.

    Args:
        sections: names of `SECTIONS`.
        to: the folder for a file per section, `speed.csv`, `README.md` and the figures; sections
            that were measured before stay.
        repeats: rounds that count; None for as many as the sizes say.
        quick: a coarse look in about a minute.
        data_dir: where Fashion-MNIST lies; noise of its shape is taken where it is nowhere.
        device: "cpu" (one thread) or "cuda".

    Raises:
        UserError: the data cannot be read or the result cannot be written.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    sizes = setting.QUICK if quick else setting.FULL
    # Before anything is written: the page itself may lie in the checkout whose state this tells.
    environment = _environment(device)
    command = " ".join(
        ["vcl-radial bench", *sections]
        + ([f"--repeats {repeats}"] if repeats else [])
        + (["--quick"] if quick else [])
        + ([f"--device {device}"] if device != "cpu" else [])
    )
    with TemporaryDirectory() as scratch, quiet():
        measures = _measures()
        images = fashion_or_noise(data_dir, Path(scratch), sizes.train_images, sizes.test_images)
        told = Setting(sizes, repeats or sizes.repeats, images, Path(scratch), device)
        make_folder(to)  # now, not when minutes have been measured
        print(f"data: {images.description}")
        for name in sections:
            print(f"\n{name}: {SECTIONS[name]}", flush=True)
            result = measures[name](told)
            print(page.to_text(result.rows, result.notes), end="", flush=True)
            found = Record(result.rows, result.notes, command, images.description, environment)
            record.write(to, name, found)
            files = _write_page(to)
    print(f"\n{to / 'README.md'}, " + ", ".join(["speed.csv", *files]))


def _write_page(to: Path) -> list[str]:
    """Table, page and figures of all that the folder holds; the figures' files."""
    records = record.read(to)
    drawn = _draw(records, to)
    write_atomically(to / "speed.csv", page.to_csv(records))
    write_atomically(to / "README.md", page.to_markdown(records, drawn))
    return [file for figures in drawn.values() for file, _ in figures]


def _measures() -> dict[str, Callable[[Setting], Result]]:
    """The sections; imported where warnings are held back, since Avalanche comes with them."""
    from vcl_radial.bench import (
        every_method,
        fixed_cost,
        growth,
        kl,
        lanes,
        peers,
        regression,
        step,
        whole_run,
    )

    return {
        "step": step.measure,
        "peers": peers.measure,
        "methods": every_method.measure,
        "run": whole_run.measure,
        "command": fixed_cost.measure,
        "growth": growth.measure,
        "kl": kl.measure,
        "regression": regression.measure,
        "lanes": lanes.measure,
    }


def _draw(records: dict[str, Record], to: Path) -> dict[str, list[tuple[str, str]]]:
    """Save the figures of every section; their files and what they show."""
    drawn: dict[str, list[tuple[str, str]]] = {}
    for name, found in records.items():
        for file, title, figure in _figures(name, found.rows):
            save(figure, to / file)
            drawn.setdefault(name, []).append((f"{file}.png", title))
    return drawn


def _figures(section: str, rows: list[Row]) -> Iterator[tuple[str, str, Figure]]:
    """Name, title and figure of each picture of a section."""
    if section in _RATIOS:
        metric, title = _RATIOS[section]
        yield section, title.format(metric), pictures.ratios(rows, metric, title.format(metric))
    elif section in _GROWTH:
        yield section, _GROWTH[section], pictures.growth(rows, _GROWTH[section])
    elif section == "lanes":
        compared = [r for r in rows if r.metric.startswith("ratio")]
        yield section, _STEP_OF_LANES, pictures.growth(compared, _STEP_OF_LANES)
        if any(r.metric == _TIMES for r in rows):
            yield "lanes-jobs", _WORKERS, pictures.ratios(rows, _TIMES, _WORKERS)


def _environment(device: str) -> dict[str, Any]:
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    described = environment.describe(name, torch.get_num_threads())
    for package in _PEERS:
        try:
            described["packages"][package] = version(package)
        except PackageNotFoundError:
            described["packages"][package] = None
    return described
