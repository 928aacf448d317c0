"""`vcl-radial card`: print the card of a kept model in Markdown."""

from __future__ import annotations

import argparse

from vcl_radial.cli.arguments import DONE, folder


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Print the card of the model that a finished run keeps, in Markdown: data, tasks, scores, "
        "calibration, limits, and the training data that it holds."
    )
    parser.add_argument(
        "folder", metavar="FOLDER", type=folder, help="the folder of a finished run"
    )
    parser.set_defaults(command=_card)


def _card(options: argparse.Namespace) -> int:
    from vcl_radial.reporting.model_card import card_text

    print(card_text(options.folder), end="")
    return DONE
