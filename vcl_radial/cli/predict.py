"""`vcl-radial predict`: predict files or a data set with the model of a finished run."""

from __future__ import annotations

import argparse
from pathlib import Path

from vcl_radial.cli.arguments import DONE, add_data_dir, add_device, folder, usable_device


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Predict with the model that a finished run keeps in its folder, and write a row for each "
        "input: its class with the probability, entropy and mutual information in nats, and the "
        "task whose head was used. For the model of a table: mean and standard deviation."
    )
    add_model(parser)
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a folder of images, in which folders name the classes if they are known; an .npz "
        "file with x and, if known, y; a .csv file with a row of numbers for each input and, if "
        "known, a column y; or a data set, whose test part is taken",
    )
    parser.add_argument(
        "--to",
        metavar="FILE",
        type=Path,
        required=True,
        help="the table, .csv, or .parquet if pyarrow is installed",
    )
    add_task(parser, "default: that of the head which is least uncertain")
    parser.add_argument(
        "--probabilities", action="store_true", help="add a column with the probability of a class"
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help="print accuracy, NLL and calibration error of the inputs with known classes, and how "
        "often the inferred head was right",
    )
    add_data_dir(parser)
    add_device(parser)
    parser.set_defaults(command=_predict)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the arguments FOLDER and `--trust` of a command that loads a model."""
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        type=folder,
        help="the folder of a finished run, or of a method: then all its seeds predict as one",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the classes that FOLDER names; this runs code that its author has written",
    )


def add_task(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """Add the argument `--task`; `otherwise` says what happens without it."""
    parser.add_argument(
        "--task",
        metavar="N|NAME",
        help=f"task of the inputs, by its number (from 0) or name ({otherwise})",
    )


def _predict(options: argparse.Namespace) -> int:
    from vcl_radial.models.predict import predict_file
    from vcl_radial.models.table import TableModel
    from vcl_radial.models.table_predict import predict_table
    from vcl_radial.runs.kept import load

    device = usable_device(options.device)
    model = load(options.folder, trust=options.trust)
    if isinstance(model, TableModel):
        for line in predict_table(model, options.data, options.to, scores=options.scores):
            print(line)
        return DONE
    model = model.to(device)
    lines = predict_file(
        model,
        options.data,
        options.to,
        task=options.task,
        probabilities=options.probabilities,
        scores=options.scores,
        data_dir=options.data_dir,
    )
    for line in lines:
        print(line)
    return DONE
