"""Predict the rows of a file with the kept model of a table."""

from __future__ import annotations

from pathlib import Path

from vcl_radial.data.data_files import expanded
from vcl_radial.data.further_rows import load_further_rows
from vcl_radial.errors import UserError
from vcl_radial.models.table import TableModel
from vcl_radial.models.tables import open_table

COLUMNS = {"input": str, "mean": float, "spread": float}
"""The columns of the table: number of the row, and mean and standard deviation of the target."""


def predict_table(model: TableModel, data: str, to: Path, *, scores: bool = False) -> list[str]:
    """Write the predictions for the rows of a file; return the lines of their scores.

    Args:
        model: the model.
        data: an .npz or a CSV file; see `load_further_rows`.
        to: the table, .csv or .parquet.
        scores: whether to score the predictions of rows with targets.

    Raises:
        UserError: the table cannot be written, or there are no targets to score.
        DataError: the file is damaged or does not fit the model.
    """
    path = expanded(Path(data))
    if to.exists() and path.exists() and to.samefile(path):
        raise UserError("is the input too; name another file", at=to)
    x, y = load_further_rows(path, model.card)
    if scores and y is None:
        raise UserError("has no targets to score by; leave out --scores", at=path)
    predicted = model.predict(x)
    with open_table(to, COLUMNS) as write:
        names = [str(row) for row in range(len(x))]
        write([names, predicted.mean.tolist(), predicted.spread.tolist()])
    if y is None or not scores:
        return []
    rmse = float((predicted.mean - y).square().mean().sqrt())
    return [f"{len(x)} rows: RMSE {rmse:.4g}, NLL {-float(model.log_prob(x, y).mean()):.4g} nats"]
