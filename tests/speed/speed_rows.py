"""Rows and settings for tests of the measurements of speed."""

from dataclasses import replace
from types import SimpleNamespace

from benchmarks.speed.setting import Row, Setting, rows_of


def row(section, variant, size, metric, values) -> Row:
    """The row of one variant and metric."""
    (made,) = rows_of(section, {metric: {variant: values}}, size)
    return made


def resized(setting: Setting, **sizes) -> Setting:
    """A setting of one round with other sizes."""
    return replace(setting, repeats=1, sizes=SimpleNamespace(**{**vars(setting.sizes), **sizes}))
