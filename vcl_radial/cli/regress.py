"""`vcl-radial regress`: methods on the UCI regression sets, and a set in sequence."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import (
    DONE,
    add_data_dir,
    add_methods,
    add_out,
    add_settings,
    count,
    seed_number,
)

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "regress",
        help="regression: the UCI sets, all at once or in sequence",
        description="Run methods on regression sets, all splits of a set as one program. Finished "
        "units are kept, and the report is drawn anew at the end. Benchmarks: diabetes and "
        "diabetes-sequence need no files; uci and uci-sequence want uci/ in the data folder.",
    )
    parser.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        nargs="?",
        default="diabetes",
        help="diabetes (default), uci, diabetes-sequence, uci-sequence, or a .toml file",
    )
    add_methods(
        parser, "recipes in baselines/regression, or .toml files (default: the benchmark's)"
    )
    parser.add_argument(
        "--sets", metavar="SET", nargs="+", action="extend", default=[], help="default: all"
    )
    parser.add_argument(
        "--splits", metavar="N", type=count, help="only the first N splits (default: all)"
    )
    parser.add_argument(
        "--tune",
        action="store_true",
        help="choose each split's setting from the benchmark's grid, on a part of its own training "
        "rows; the test rows are not looked at",
    )
    parser.add_argument("--seed", metavar="N", type=seed_number, default=0, help="default: 0")
    add_settings(parser, "override keys of the recipes (steps=5000 prior_scale=0.5)")
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="programs at a time, one thread each (default: one per core)",
    )
    parser.add_argument(
        "--lanes",
        metavar="N",
        type=count,
        default=40,
        help="splits and settings that train as one program (default: 40)",
    )
    add_data_dir(parser)
    add_out(parser, "runs/regression")
    parser.add_argument(
        "--to",
        metavar="DIR",
        type=Path,
        help="where the report goes (default: OUT/report/BENCHMARK)",
    )
    parser.set_defaults(command=_regress)


def _regress(options: argparse.Namespace) -> int:
    from vcl_radial.runs.catalogue import parse_setting
    from vcl_radial.runs.runner import available_cores
    from vcl_radial.tracks.regression.command import Choices, regress

    stem = Path(options.benchmark).stem
    regress(
        Choices(
            benchmark=options.benchmark,
            methods=options.methods,
            sets=options.sets,
            splits=options.splits,
            seed=options.seed,
            tune=options.tune,
            overrides=dict(parse_setting(text) for text in options.settings),
            out=options.out,
            to=options.to or options.out / "report" / stem,
            data_dir=options.data_dir,
            jobs=options.jobs or available_cores(),
            lanes=options.lanes,
            command=_in_words(options),
        )
    )
    return DONE


def _in_words(options: argparse.Namespace) -> str:
    """The command, with what decides the numbers."""
    words = ["vcl-radial", "regress", options.benchmark]
    words += ["--method", *options.methods] if options.methods else []
    words += ["--sets", *options.sets] if options.sets else []
    words += ["--splits", str(options.splits)] if options.splits else []
    words += ["--tune"] if options.tune else []
    words += ["--seed", str(options.seed)] if options.seed else []
    words += ["--set", *options.settings] if options.settings else []
    return shlex.join(words)
