"""`vcl-radial export`: write the model of a finished run as ONNX or by torch.export."""

from __future__ import annotations

import argparse
from pathlib import Path

from vcl_radial.cli.arguments import DONE, count
from vcl_radial.cli.predict import add_model, add_task


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Write a program that maps raw inputs x [N, ...] to the probabilities of the classes: as "
        "ONNX (pip install vcl-radial[export]) or by torch.export (.pt2). The names of the classes "
        "are stored with it."
    )
    add_model(parser)
    parser.add_argument(
        "--to", metavar="FILE", type=Path, required=True, help="the file, .onnx or .pt2"
    )
    add_task(parser, "required where every task has a head")
    parser.add_argument(
        "--draws",
        metavar="K",
        type=count,
        help="probabilities under K draws of the weights, [K, N, C] (default: at the means of the "
        "weights, [N, C])",
    )
    parser.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> int:
    from vcl_radial.errors import UserError
    from vcl_radial.models.export import export
    from vcl_radial.models.predict import task_number
    from vcl_radial.models.table import TableModel
    from vcl_radial.runs.kept import load

    model = load(options.folder, trust=options.trust)
    if isinstance(model, TableModel):
        raise UserError("keeps the model of a table, which is not exported", at=options.folder)
    task = task_number(model, options.task)
    export(model, options.to, task=task, draws=options.draws)
    print(f"{options.to}: {options.to.stat().st_size:,} bytes")
    return DONE
