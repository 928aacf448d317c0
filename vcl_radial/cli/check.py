"""`vcl-radial check`: check that a method keeps the rules of all methods."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from functools import partial

from vcl_radial.cli.arguments import DONE, FAILED, INTERRUPTED, add_settings, settings_of


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Train a method on a few digit images and on numbers, in under a minute, and "
        "report each fault with its fix: does it run, learn, consolidate, leave the heads of other "
        "tasks unchanged, resume from a checkpoint to the same bits, and scale its penalty as the "
        "other methods do? The last line lists what the method supports: classes with several "
        "heads or one head, numbers (regression), convolutions. For a posterior: is it a "
        "distribution, and is its KL right?"
    )
    parser.add_argument(
        "method",
        metavar="PACKAGE.MODULE:CLASS|FILE|NAME",
        help="your class (of a method or a posterior), a .toml file, or the name of a "
        "method that `list` prints for the track continual",
    )
    add_settings(parser, "set keys of the recipe (posterior=none, options.strength=3)")
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    from vcl_radial.system.quiet import quiet

    settings = settings_of(options)
    with quiet():  # Avalanche's imports warn
        from vcl_radial.conformance import check
    try:
        verdicts = check(options.method, settings, on_verdict=partial(print, flush=True))
    except KeyboardInterrupt:
        print("vcl-radial: stopped", file=sys.stderr)
        return INTERRUPTED
    counts = Counter(verdict.outcome for verdict in verdicts)
    faults = f"{counts['fault']} fault{'' if counts['fault'] == 1 else 's'}"
    print(f"{options.method}: {counts['ok']} ok, {faults}, {counts['skipped']} skipped")
    return FAILED if verdicts.faults else DONE
