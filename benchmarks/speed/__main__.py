"""`python -m benchmarks.speed SECTION ...`: speed and memory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from vcl_radial.cli import run_guarded
from vcl_radial.cli.arguments import (
    DONE,
    INTERRUPTED,
    Parser,
    add_data_dir,
    count,
    folder,
    usable_device,
)
from vcl_radial.system.quiet import quiet

with quiet():  # about the packages that it imports
    from benchmarks.speed.measuring import MEASURES, PROGRAM, measure_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line names, and return the exit code as `vcl-radial` does."""
    return run_guarded(PROGRAM, lambda: _measure(parser().parse_args(arguments)))


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = Parser(
        prog=PROGRAM,
        description="Measure time and memory of training, relative to plain PyTorch and to other "
        "libraries, on one thread of a CPU or on a GPU.",
    )
    parser.add_argument(
        "sections",
        metavar="SECTION",
        nargs="*",
        type=_section,
        help="a name that --list prints (default: all)",
    )
    parser.add_argument("--list", action="store_true", help="list what each section measures")
    parser.add_argument(
        "--repeats", metavar="N", type=count, help="measured rounds (default: 5; with --quick 2)"
    )
    parser.add_argument("--quick", action="store_true", help="a coarse look in some minutes")
    parser.add_argument(
        "--to",
        metavar="DIR",
        type=folder,
        default=Path("reports/speed"),
        help="where to write (default: reports/speed)",
    )
    add_data_dir(parser, "; else the downloaded Fashion-MNIST, else random images")
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="the device that trains (default: cpu)",
    )
    return parser


def _section(text: str) -> str:
    if text not in MEASURES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(MEASURES)}")
    return text


def _measure(options: argparse.Namespace) -> int:
    if options.list:
        for name, measures in MEASURES.items():
            print(f"{name:14}{measures}")
        return DONE
    device = usable_device(options.device)
    try:
        measure_all(
            list(dict.fromkeys(options.sections)) or list(MEASURES),
            options.to,
            repeats=options.repeats,
            quick=options.quick,
            data_dir=options.data_dir,
            device=device,
        )
    except KeyboardInterrupt:
        print(f"{PROGRAM}: stopped; sections that were done are kept", file=sys.stderr)
        return INTERRUPTED
    return DONE


if __name__ == "__main__":
    sys.exit(main())
