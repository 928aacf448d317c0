"""`vcl-radial refer`: fundus photographs, and which of them to leave to an expert."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, FAILED, add_settings, usable_device

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "refer",
        help="retinopathy: train, refer the least certain photographs, score the others",
        description="Train methods on fundus photographs and score them when the photographs that "
        "they are least certain about are referred to an expert. Benchmarks: synthetic draws its "
        "pictures and needs no files; eyepacs wants retinopathy/ in the data folder and tests on "
        "IDRiD too. Finished runs are kept; one that was stopped goes on from its last epoch.",
    )
    parser.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        nargs="?",
        default="synthetic",
        help="synthetic (default) or eyepacs",
    )
    parser.add_argument(
        "--method",
        dest="methods",
        metavar="NAME|FILE",
        nargs="+",
        action="extend",
        default=[],
        help="shipped recipes, or .toml files (default: radial and mfvi)",
    )
    parser.add_argument(
        "--seeds", metavar="N", type=_seed, nargs="+", action="extend", help="default: 0"
    )
    add_settings(parser, "keys of the recipes, or data.KEY (epochs=20 channels=8 data.size=128)")
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="where the data lie (default: $VCL_RADIAL_DATA)",
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where networks are trained (default: cuda where there is one)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("runs/referral"),
        help="default: %(default)s",
    )
    parser.set_defaults(command=_refer)


def _seed(text: str) -> int:
    if not text.isdecimal() or not int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def _refer(options: argparse.Namespace) -> int:
    from vcl_radial.experiments.catalogue import parse_setting
    from vcl_radial.referral.catalogue import plan
    from vcl_radial.referral.command import Choices, refer

    runs = plan(
        options.benchmark,
        options.methods or ["radial", "mfvi"],
        options.seeds or [0],
        dict(parse_setting(text) for text in options.settings),
    )
    choices = Choices(
        runs=runs,
        out=options.out,
        data_dir=options.data_dir,
        device=usable_device(options.device),
    )
    return FAILED if refer(choices) else DONE
