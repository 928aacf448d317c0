"""`vcl-radial analyse`: the pictures behind the radial posterior."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.analyses import ANALYSES
from vcl_radial.cli.arguments import DONE, INTERRUPTED, seed_number

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands

_ALL = "all"


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "analyse",
        help="draw the pictures behind the radial posterior, published beside ours",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compute the figures of the papers on the radial posterior anew, on one "
        "thread of a CPU.\nAnalyses (all: every one):\n"
        + "\n".join(f"  {name:19}{words}" for name, words in ANALYSES.items()),
    )
    parser.add_argument("names", metavar="NAME", nargs="+", type=_name)
    parser.add_argument("--seed", metavar="N", type=seed_number, default=0, help="default: 0")
    parser.add_argument("--quick", action="store_true", help="a coarse look, seconds each")
    parser.add_argument(
        "--to",
        metavar="DIR",
        type=Path,
        default=Path("reports/analysis"),
        help="where to write (default: %(default)s)",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="where Fashion-MNIST lies (default: $VCL_RADIAL_DATA; scikit-learn's digits where "
        "neither is named)",
    )
    parser.set_defaults(command=_analyse)


def _name(text: str) -> str:
    if text not in (_ALL, *ANALYSES):
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join((_ALL, *ANALYSES))}")
    return text


def _analyse(options: argparse.Namespace) -> int:
    from vcl_radial.analyses.analysis import Setting
    from vcl_radial.analyses.command import analyse_all

    names = list(ANALYSES) if _ALL in options.names else list(dict.fromkeys(options.names))
    setting = Setting(
        seed=options.seed,
        quick=options.quick,
        data_dir=options.data_dir,
        say=lambda words: print(f"  {words}", flush=True),
    )
    try:
        analyse_all(names, options.to, setting, _in_words(options))
    except KeyboardInterrupt:
        print("vcl-radial: stopped; analyses that were done are kept", file=sys.stderr)
        return INTERRUPTED
    return DONE


def _in_words(options: argparse.Namespace) -> str:
    """The command, with what decides the numbers."""
    words = ["vcl-radial", "analyse", *options.names]
    words += ["--seed", str(options.seed)] if options.seed else []
    words += ["--quick"] if options.quick else []
    return " ".join(words)
