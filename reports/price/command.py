"""`python -m reports price`: one task sequence and seed after another, and the page."""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from reports import pages
from reports.price.measure import measure
from reports.price.page import FIGURE, RESULTS, draw, read
from reports.price.sequences import BENCHMARKS, plan
from reports.price.streams import FEATURES, name_of, stream_of
from vcl_radial.cli.arguments import (
    DONE,
    Parser,
    add_data_dir,
    add_settings,
    count,
    folder,
    settings_of,
)
from vcl_radial.config.command_lines import command_line, set_arguments
from vcl_radial.errors import UserError
from vcl_radial.files.atomic import gzipped
from vcl_radial.reporting.figures import save
from vcl_radial.runs import environment
from vcl_radial.runs.folder import check_page, make_folder, write_atomically
from vcl_radial.system import processor

PAGE = "README.md"


def parser(program: str) -> Parser:
    """The command's arguments."""
    parser = Parser(
        prog=program,
        description="Carry the posterior of one linear model through task sequences in many "
        "shapes: full, low rank, blocks, diagonal, radial. Scores, and nats from the exact "
        "posterior. The same command resumes after an interruption.",
    )
    parser.add_argument(
        "benchmarks",
        metavar="BENCHMARK",
        nargs="*",
        help="a task sequence that `vcl-radial list` prints, or a .toml file (default: four)",
    )
    parser.add_argument(
        "--seeds", metavar="N", type=count, default=1, help="seeds 0 to N-1 (default: 1)"
    )
    default = Path("runs/price")
    parser.add_argument(
        "--to", metavar="DIR", type=folder, default=default, help=f"output folder ({default})"
    )
    add_data_dir(parser)
    add_settings(parser, "set keys of the features (options.units=500) or the stream")
    parser.set_defaults(command=_price)
    return parser


def _price(options: argparse.Namespace) -> int:
    """Measure the runs that the folder's table lacks, and write its page.

    Raises:
        UserError: a stream is no task sequence, or the folder has lines of other settings.
        DataError: a data file or the folder's table is missing or damaged.
    """
    to, settings = options.to, settings_of(options)
    names = list(dict.fromkeys(options.benchmarks or BENCHMARKS))
    specs = plan(names, range(options.seeds), settings)
    processor.prepare(threads=1)
    make_folder(to)
    check_page(to / PAGE, [RESULTS])
    for spec in specs:
        stream_settings = _settings(spec, settings)
        if _is_there(read(to), spec, stream_settings, to):
            continue
        started = time.perf_counter()
        lines = measure(stream_of(spec, options.data_dir), spec.seed, partial(print, flush=True))
        origin: dict[str, Any] = {
            "command": _command(spec.benchmark, settings),
            "settings": stream_settings,
            "commit": environment.loaded() or "unknown",
            "processor": environment.processor(),
            "seconds": round(time.perf_counter() - started, 1),
        }
        _add(to, pd.DataFrame(lines).assign(**origin))
    save(draw(read(to)), to / FIGURE)
    pages.write([Path(__file__).with_name("README.md.jinja")], to)
    print(f"{to / PAGE}, {RESULTS}, {FIGURE}.png")
    return DONE


def _add(to: Path, lines: pd.DataFrame) -> None:
    """Add lines to the table; several commands may fill it together."""
    with FileLock(to / f".{RESULTS}.lock"):
        table = pd.concat([part for part in (read(to), lines) if len(part)])
        text = io.StringIO()
        table.sort_values(["stream", "seed"], kind="stable").to_csv(
            text, index=False, na_rep="nan", float_format="%.6g"
        )
        write_atomically(to / RESULTS, gzipped(text.getvalue()))


def _command(benchmark: str, settings: dict[str, Any]) -> str:
    """The command that makes such lines, without the number of seeds."""
    return command_line(benchmark, program="python -m reports price", set=set_arguments(settings))


def _settings(spec: Any, settings: dict[str, Any]) -> str:
    """The features and all other keys that were set, as text."""
    stream_keys = {key: value for key, value in settings.items() if not key.startswith("options.")}
    features = [FEATURES] if spec.TRACK == "retinopathy" else _pairs(spec.recipe.options)
    return " ".join([*features, *_pairs(stream_keys)])


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(values.items())]


def _is_there(table: pd.DataFrame, spec: Any, settings: str, to: Path) -> bool:
    """Whether a table has the stream of a run with its seed.

    Raises:
        UserError: it has the stream with other settings.
    """
    stream = name_of(spec)
    rows = table[table["stream"] == stream]
    if different := set(rows["settings"]) - {settings}:
        raise UserError(
            f"has {stream} with {different.pop()}, and not with {settings}: name another folder "
            "with --to",
            to / RESULTS,
        )
    return bool((rows["seed"] == spec.seed).any())
