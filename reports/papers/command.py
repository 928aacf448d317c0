"""`python -m reports NAME ...`: figures and tables of the papers, published beside ours."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields

from reports.papers.analysis import Setting
from reports.papers.catalogue import check_options, figures, members, pages
from reports.papers.compute import compute_all
from vcl_radial.cli.arguments import (
    DONE,
    INTERRUPTED,
    Parser,
    add_data_dir,
    add_device,
    add_list,
    add_out,
    add_settings,
    count,
    folder,
    seed_number,
    settings_of,
    usable_device,
)
from vcl_radial.config.command_lines import command_line
from vcl_radial.errors import UserError


def parser(program: str) -> Parser:
    """The command's arguments."""
    parser = Parser(
        prog=program,
        description="Compute figures and tables of the papers, published numbers beside ours, on "
        "one thread of a CPU. Without a name: list them.",
        epilog=f"Also: {program} price --help, {program} pages --help",
    )
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        type=_known,
        help="a figure, a page with all of its figures, or `all` (default: list them)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=seed_number, default=0, help="the first seed (default: 0)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="compute coarsely, in half a minute per figure"
    )
    parser.add_argument(
        "--to", metavar="DIR", type=folder, help="where to write (default: the folder of the page)"
    )
    add_data_dir(parser, "; else scikit-learn's digits, for pruning the downloaded data")
    runs = parser.add_argument_group("options for pruning, whose networks are runs")
    runs.add_argument(
        "--seeds", metavar="N", type=count, default=3, help="number of seeds (default: 3)"
    )
    add_list(runs, "--method", dest="methods", metavar="NAME", help="the methods (default: all)")
    runs.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="number of runs at a time, each on one thread (default: one per core)",
    )
    add_settings(runs, "set keys of the recipe (epochs=20) or of the data (data.dataset=digits)")
    add_out(runs, "runs")
    add_device(runs)
    parser.set_defaults(command=_papers)
    return parser


def _known(name: str) -> str:
    """Parse an argument that names figures."""
    names = ("all", *pages(), *figures())
    if name not in names:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
    return name


def _papers(options: argparse.Namespace) -> int:
    if options.methods and not options.names:
        raise UserError("takes all arguments that follow: put the figure before it", "--method")
    if not options.names:
        return _list()
    names = members(options.names)
    command = command_line(
        *options.names,
        program="python -m reports",
        seed=options.seed or None,
        method=options.methods,
        seeds=options.seeds if options.seeds != 3 else None,
        quick=options.quick,
        set=options.settings,
    )
    given = {f.name: getattr(options, f.name) for f in fields(Setting) if hasattr(options, f.name)}
    given |= {"settings": settings_of(options), "command": command}
    given |= {"device": usable_device(options.device)}
    setting = Setting(**given, say=lambda line: print(f"  {line}", flush=True))
    check_options(names, setting)
    try:
        compute_all(names, options.to, setting)
    except KeyboardInterrupt:
        print("reports: stopped; figures that were done are kept", file=sys.stderr)
        return INTERRUPTED
    return DONE


def _list() -> int:
    """Print every page with its figures."""
    for page in pages().values():
        print(f"{page.name}: {page.title} ({page.folder})")
        for name, shows in page.figures.items():
            print(f"  {name:19}{shows}")
    return DONE
