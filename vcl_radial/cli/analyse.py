"""`vcl-radial analyse`: the papers' pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, INTERRUPTED, seed_number
from vcl_radial.papers import ANALYSES, GROUPS

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands

_ALL = "all"


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "analyse",
        help="draw the papers' pictures, published beside ours",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compute the figures of the papers anew, on one thread of a CPU.\n"
        "Analyses (all: every one):\n" + "\n".join(map(_describe, GROUPS)),
    )
    parser.add_argument("names", metavar="NAME", nargs="+", type=_name)
    parser.add_argument("--seed", metavar="N", type=seed_number, default=0, help="default: 0")
    parser.add_argument("--quick", action="store_true", help="a coarse look, seconds each")
    parser.add_argument(
        "--to",
        metavar="DIR",
        type=Path,
        help="where to write (default: "
        + ", ".join(f"{group.folder} for {name}" for name, group in GROUPS.items())
        + ")",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="where Fashion-MNIST lies (default: $VCL_RADIAL_DATA; scikit-learn's digits where "
        "neither is named)",
    )
    parser.set_defaults(command=_analyse)


def _describe(name: str) -> str:
    """A group with its analyses, line by line."""
    analyses = GROUPS[name].analyses.items()
    return "\n".join([f"{name}:", *(f"  {name:19}{words}" for name, words in analyses)])


def _name(text: str) -> str:
    choices = (_ALL, *ANALYSES, *GROUPS)
    if text not in choices:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(choices)}")
    return text


def _members(word: str) -> Iterable[str]:
    """The analyses that a word of the command line stands for."""
    if word == _ALL:
        return ANALYSES
    return GROUPS[word].analyses if word in GROUPS else (word,)


def _analyse(options: argparse.Namespace) -> int:
    from vcl_radial.papers.analysis import Setting
    from vcl_radial.papers.command import analyse_all

    setting = Setting(
        seed=options.seed,
        quick=options.quick,
        data_dir=options.data_dir,
        say=lambda words: print(f"  {words}", flush=True),
    )
    try:
        asked = dict.fromkeys(name for word in options.names for name in _members(word))
        for group in GROUPS.values():
            if names := [name for name in asked if name in group.analyses]:
                analyse_all(names, options.to or Path(group.folder), setting, _in_words(options))
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
