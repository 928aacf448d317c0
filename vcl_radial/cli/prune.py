"""`vcl-radial prune`: networks pruned by their posterior, beside the papers' tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcl_radial.cli import prune_lenet, prune_mlp
from vcl_radial.cli.arguments import Parser

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands

SUBJECTS = {
    "lenet": (
        prune_lenet,
        "LeNet-5 by the radii of RDP posteriors (RDP, Table 2)",
    ),
    "mlp": (prune_mlp, "an MLP by the signal-to-noise ratio of its weights (BAdam, Fig. 2)"),
}
"""Modules with `add_arguments(parser)` and `run(arguments)`, and what they prune."""


def add(commands: Commands) -> None:
    """The command, and one of its own for each subject."""
    parser = commands.add_parser("prune", help="networks pruned by their posterior")
    subjects = parser.add_subparsers(required=True, metavar="SUBJECT", parser_class=Parser)
    for name, (module, words) in SUBJECTS.items():
        subject = subjects.add_parser(name, help=words, description=f"Prune {words}.")
        module.add_arguments(subject)
        subject.set_defaults(command=module.run)
