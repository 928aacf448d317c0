"""`vcl-radial prune lenet`: LeNet-5 pruned by the radii of its rows and columns (RDP, Table 2)."""

from __future__ import annotations

import argparse
import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import (
    DONE,
    add_data_dir,
    add_device,
    add_out,
    add_settings,
    count,
    usable_device,
)
from vcl_radial.errors import UserError

if TYPE_CHECKING:
    from vcl_radial.papers.pruning.lenet_training import LeNetUnit

METHOD = "rdp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `vcl-radial prune lenet`."""
    parser.add_argument(
        "--dataset",
        choices=("mnist", "digits"),
        default="mnist",
        help="default: mnist; digits comes with scikit-learn",
    )
    parser.add_argument("--seeds", metavar="N", type=count, default=3, help="default: 3")
    add_settings(parser, "override how it is trained and pruned (epochs=20 tolerance=0.1)")
    add_data_dir(parser, ", else a cache that is filled by download")
    add_device(parser)
    add_out(parser, "runs/prune/lenet")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="where the report goes (default: OUT/report)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Train and prune what is not finished, then write the report.

    Raises:
        UserError: a setting or the data are wrong, or a result cannot be written.
        Diverged: a loss is no longer a finite number.
    """
    from vcl_radial.papers.pruning.lenet import perform
    from vcl_radial.papers.pruning.lenet_report import write_report
    from vcl_radial.runs.result_file import read_all

    units = [_unit(arguments, seed) for seed in range(arguments.seeds)]
    to = arguments.to or arguments.out / "report"
    perform(units, arguments.out, to, arguments.data_dir, usable_device(arguments.device))
    write_report(read_all(units, arguments.out), to, _in_words(arguments))
    return DONE


def _unit(arguments: argparse.Namespace, seed: int) -> LeNetUnit:
    from pydantic import ValidationError

    from vcl_radial.papers.pruning.lenet_training import LeNetUnit
    from vcl_radial.runs.catalogue import parse_setting

    settings = dict(parse_setting(text) for text in arguments.settings)
    fixed = {"method": METHOD, "seed": seed, "dataset": arguments.dataset}
    for key in settings.keys() & fixed.keys():
        raise UserError(f"--set {key}: is not a setting of the training")
    try:
        return LeNetUnit.model_validate({**settings, **fixed})
    except ValidationError as invalid:
        first = invalid.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = [name for name in LeNetUnit.model_fields if name not in fixed]
            nearest = get_close_matches(key, known, 1, cutoff=0.0)[0]
            raise UserError(
                f"--set: unknown key {key!r}; the nearest known one is {nearest!r}"
            ) from None
        raise UserError(f"--set {key}: {first['msg'].lower()}") from None


def _in_words(arguments: argparse.Namespace) -> str:
    """The command, with what decides the numbers."""
    words = ["vcl-radial", "prune", "lenet"]
    words += ["--dataset", arguments.dataset] if arguments.dataset != "mnist" else []
    words += ["--seeds", str(arguments.seeds)] if arguments.seeds != 3 else []
    words += ["--set", *arguments.settings] if arguments.settings else []
    return shlex.join(words)
