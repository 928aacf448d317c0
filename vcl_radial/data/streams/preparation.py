"""The preparation of all streams: standardise the pixels, hold out a validation set."""

from __future__ import annotations

import torch
from torch import Tensor

from vcl_radial.data.streams.choices import held_out
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.errors import DataError, UserError


def standardised(data: ImageData, *, flatten: bool, rows: Tensor | None = None) -> Tensor:
    """The inputs of `prepared`."""
    return prepared(data, flatten=flatten, rows=rows)[0]


def prepared(
    data: ImageData, *, flatten: bool, rows: Tensor | None = None
) -> tuple[Tensor, tuple[float, float]]:
    """Return all images, training before test, with the training pixels at mean 0, variance 1.

    x = (pixel - m) / s, where m and s are the scalar mean and standard deviation over all pixels
    of the *whole standard training set*: of every task, and before a validation set is held out.
    This is the usual preparation for these benchmarks; the first task then uses two numbers that
    depend on later ones. With `rows` they are the numbers of some of the training images.

    Args:
        data: The data set.
        flatten: Inputs as vectors.
        rows: Row numbers of the training images that define m and s; None: all of them.

    Returns:
        float32 [N, D]; without `flatten`, images [N, C, H, W], C = 1 if they have no channels.
        Then m and s.

    Raises:
        DataError: All training pixels are equal.
    """
    x = torch.cat([data.train_x, data.test_x]).float()
    images = x[: len(data.train_x)] if rows is None else x[rows]
    std, mean = torch.std_mean(images, correction=0)
    if std == 0:
        raise DataError("all training pixels are equal, so there is nothing to learn", at=data.name)
    x.sub_(mean).div_(std)
    scaling = float(mean), float(std)
    if flatten:
        return x.flatten(1), scaling
    return (x.unsqueeze(1) if x.ndim == 3 else x), scaling


def hold_out(
    rows: Tensor,
    fraction: float,
    generator: torch.Generator,
    task_name: str,
    chosen: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Split rows into a training and a validation part: at random, or by the data's own split.

    Args:
        rows: Row numbers [n].
        fraction: The share of the validation part, rounded to whole rows.
        generator: Generator of the random order.
        task_name: Name of the task, for the error.
        chosen: `ImageData.held_out`, for all rows; None: a random share.

    Returns:
        Training rows and validation rows, each in ascending order of their places in `rows`.

    Raises:
        UserError: One of the two parts would be empty.
    """
    if chosen is not None:
        out = chosen[rows]
        if out.all() or not out.any():
            raise UserError("needs both training and validation images", at=f'task "{task_name}"')
        return rows[~out], rows[out]
    n_held_out = held_out(len(rows), fraction, task_name)
    order = torch.randperm(len(rows), generator=generator)
    out, trained = order[:n_held_out].sort().values, order[n_held_out:].sort().values
    return rows[trained], rows[out]
