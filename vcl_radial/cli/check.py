"""`vcl-radial check`: does a method keep what all methods keep?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, FAILED, INTERRUPTED, add_settings

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "check",
        help="check that a method, or a posterior, keeps what all of them keep",
        description="Train a method on a few digits, in under a minute, and say in words what is "
        "wrong with it: does it run, learn, consolidate, leave the heads of other tasks alone, go "
        "on from a checkpoint to the same bits, and keep its penalty on the scale of the others? "
        "Of a posterior it asks first whether it is a distribution and its divergences its own.",
    )
    parser.add_argument(
        "method",
        metavar="PACKAGE.MODULE:CLASS|FILE|NAME",
        help="a class of your own (a strategy or a posterior), the .toml file of a recipe, or a "
        "name of `list`",
    )
    add_settings(parser, "override keys of the recipe (posterior=none, options.strength=3)")
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    from vcl_radial.conformance import recipe_for
    from vcl_radial.quiet import quiet
    from vcl_radial.runs.catalogue import parse_setting
    from vcl_radial.tracks.continual.preflight import check_recipe

    recipe = recipe_for(options.method, dict(parse_setting(text) for text in options.settings))
    check_recipe(recipe)
    with quiet():
        import torch

        from vcl_radial.conformance import check
    torch.set_num_threads(1)
    counts = {"ok": 0, "fault": 0, "skipped": 0}
    try:
        for verdict in check(recipe):
            print(verdict, flush=True)
            counts[verdict.outcome] += 1
    except KeyboardInterrupt:
        print("vcl-radial: stopped", file=sys.stderr)
        return INTERRUPTED
    faults = f"{counts['fault']} fault{'' if counts['fault'] == 1 else 's'}"
    print(f"{options.method}: {counts['ok']} ok, {faults}, {counts['skipped']} skipped")
    return FAILED if counts["fault"] else DONE
