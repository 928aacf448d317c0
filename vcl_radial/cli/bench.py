"""`vcl-radial bench`: speed and memory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, INTERRUPTED, add_data_dir, count, folder, usable_device

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "bench",
        help="measure speed and memory",
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
    parser.set_defaults(command=_bench)


def _section(text: str) -> str:
    from vcl_radial.bench.sections import sections

    if text not in sections():
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(sections())}")
    return text


def _bench(options: argparse.Namespace) -> int:
    from vcl_radial.bench.sections import sections

    if options.list:
        for name, measures in sections().items():
            print(f"{name:14}{measures}")
        return DONE
    device = usable_device(options.device)

    from vcl_radial.bench.measuring import measure_all

    try:
        measure_all(
            list(dict.fromkeys(options.sections)) or list(sections()),
            options.to,
            repeats=options.repeats,
            quick=options.quick,
            data_dir=options.data_dir,
            device=device,
        )
    except KeyboardInterrupt:
        print("vcl-radial: stopped; sections that were done are kept", file=sys.stderr)
        return INTERRUPTED
    return DONE
