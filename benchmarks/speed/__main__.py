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

with quiet():  # hide warnings of imports
    from benchmarks.speed.measuring import PROGRAM, TITLES, measure_all, write_page


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sections of the command line; return an exit code as `vcl-radial` does."""
    return run_guarded(PROGRAM, lambda: _measure(parser().parse_args(arguments)))


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = Parser(
        prog=PROGRAM,
        description="Measure time and memory of training, relative to plain PyTorch and to other "
        "libraries, on one thread of a CPU or on a GPU.",
    )
    add = parser.add_argument
    named = "a name that --list prints (default: all)"
    add("sections", metavar="SECTION", nargs="*", type=_section, help=named)
    add("--list", action="store_true", help="list what each section measures")
    add("--page", action="store_true", help="only write page and figures in --to again")
    add("--repeats", metavar="N", type=count, help="measured rounds (default: 5; with --quick 2)")
    add("--quick", action="store_true", help="measure coarsely, in a few minutes")
    written = "where to write (default: %(default)s)"
    add("--to", metavar="DIR", type=folder, default=Path("reports/speed"), help=written)
    add_data_dir(parser, "; else the downloaded Fashion-MNIST, else random images")
    trained = "the device that trains (default: %(default)s)"
    add("--device", choices=("cpu", "cuda"), default="cpu", help=trained)
    return parser


def _section(text: str) -> str:
    if text not in TITLES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(TITLES)}")
    return text


def _measure(options: argparse.Namespace) -> int:
    if options.list:
        for name, title in TITLES.items():
            print(f"{name:14}{title}")
        return DONE
    if options.page:
        write_page(options.to)
        return DONE
    device = usable_device(options.device)
    try:
        measure_all(
            list(dict.fromkeys(options.sections)) or list(TITLES),
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
