"""Accuracy curves as SVG coordinates, for the page's template to draw in its own colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vcl_radial.figures.accuracy_scale import AccuracyScale, accuracy_scale
from vcl_radial.figures.detail_tables import with_spread
from vcl_radial.figures.over_seeds import AccuracyOverSeeds

WIDTH, HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 12, 40


@dataclass(frozen=True)
class Point:
    """A mean: its place, and what it says when it is pointed at."""

    x: float
    y: float
    words: str


@dataclass(frozen=True)
class Line:
    """A method's line, and its band where there are seeds; a level line where it is joint."""

    method: str
    path: str
    band: str
    points: list[Point]
    level: bool


@dataclass(frozen=True)
class Chart:
    """One drawing; the ticks are places and labels."""

    name: str
    title: str
    stretched: bool
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[Line]


@dataclass(frozen=True)
class _Series:
    """Means and standard errors of a method after each of its tasks."""

    method: str
    tasks: list[int]
    mean: list[float]
    error: list[float]
    level: bool


def charts(summaries: Sequence[AccuracyOverSeeds], tasks: Sequence[str]) -> list[list[Chart]]:
    """The drawings of a benchmark: what is known of all tasks seen, and of the first.

    Each comes as two drawings, on an even axis and on one stretched towards 100 %; the one that
    shows more comes first.

    Args:
        summaries: The methods.
        tasks: The names of the tasks.

    Returns:
        The pairs of drawings; none for a single task.
    """
    if len(tasks) < 2:
        return []
    seen = [_series(s, s.seen_mean.tolist(), s.seen_error.tolist()) for s in summaries]
    oldest = [_series(s, s.mean[:, 0].tolist(), s.error[:, 0].tolist()) for s in summaries]
    stretched = accuracy_scale(_ends(seen)).stretched
    return [
        [_chart(name, title, series, len(tasks), kind) for kind in (stretched, not stretched)]
        for name, title, series in (
            ("seen", "Average over the tasks seen so far", seen),
            ("first", f"Task 1 ({tasks[0]}), the oldest memory", oldest),
        )
    ]


def _series(summary: AccuracyOverSeeds, mean: list[float], error: list[float]) -> _Series:
    rows = summary.rows
    return _Series(
        summary.method,
        rows,
        [mean[i - 1] for i in rows],
        [error[i - 1] for i in rows],
        summary.joint,
    )


def _ends(series: list[_Series]) -> list[float]:
    """All that a drawing shows: the ends of the bands."""
    return [
        min(mean + side * (0.0 if math.isnan(error) else error), 100.0)
        for s in series
        for mean, error in zip(s.mean, s.error, strict=True)
        for side in (-1, 1)
    ]


def _chart(name: str, title: str, series: list[_Series], T: int, stretched: bool) -> Chart:
    scale = accuracy_scale(_ends(series), stretched)
    every = max(1, math.ceil(T / 12))
    return Chart(
        name,
        title,
        scale.stretched,
        [(_x(i, T), str(i)) for i in range(1, T + 1, every)],
        [(_y(scale, tick), f"{tick:g}") for tick in scale.ticks],
        [_line(s, T, scale) for s in series],
    )


def _line(s: _Series, T: int, scale: AccuracyScale) -> Line:
    tasks, mean, error = s.tasks, s.mean, s.error
    if s.level:
        tasks, mean, error = [1, T], [mean[-1]] * 2, [error[-1]] * 2
    triples = list(zip(tasks, mean, error, strict=True))
    upper = [(_x(i, T), _y(scale, m + e)) for i, m, e in triples if not math.isnan(e)]
    lower = [(_x(i, T), _y(scale, m - e)) for i, m, e in triples if not math.isnan(e)]
    points = [
        Point(_x(i, T), _y(scale, m), f"{s.method}, {moment}: {with_spread(m, e, 2)} %")
        for i, m, e in triples
        for moment in ("all tasks at once" if s.level else f"after task {i}",)
    ]
    path = _path([(p.x, p.y) for p in points])
    band = f"{_path([*upper, *reversed(lower)])}Z" if len(upper) > 1 else ""
    return Line(s.method, path, band, points, s.level)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)


def _x(task: int, T: int) -> float:
    return round(_LEFT + 10 + (WIDTH - _LEFT - _RIGHT - 20) * (task - 1) / (T - 1), 1)


def _y(scale: AccuracyScale, accuracy: float) -> float:
    place = min(max(scale.place(min(accuracy, 100.0)), 0.0), 1.0)
    return round(HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - _TOP) * place, 1)
