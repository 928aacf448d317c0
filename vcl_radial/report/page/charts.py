"""Accuracy curves as SVG coordinates, for the page's template to draw in its own colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vcl_radial.report.figures.accuracy_scale import AccuracyScale, accuracy_scale
from vcl_radial.report.figures.detail_tables import with_spread
from vcl_radial.report.figures.over_seeds import AccuracyOverSeeds


@dataclass(frozen=True)
class Frame:
    """The size of a drawing and of the space around its axes, in its own units."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    def x(self, task: int, tasks: int) -> float:
        """Where a task lies, from left to right."""
        inner = self.width - self.left - self.right - 20
        return round(self.left + 10 + inner * (task - 1) / max(tasks - 1, 1), 1)

    def y(self, place: float) -> float:
        """Where a place on a scale lies, 0 at its lower end and 1 at its upper."""
        inner = self.height - self.bottom - self.top
        return round(self.height - self.bottom - inner * min(max(place, 0.0), 1.0), 1)


FRAME = Frame(460, 300, left=46, right=14, top=12, bottom=40)


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

    title: str
    frame: Frame
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
        [_chart(title, series, len(tasks), kind) for kind in (stretched, not stretched)]
        for title, series in (
            ("Average over the tasks seen so far", seen),
            (f"Task 1 ({tasks[0]}), the oldest memory", oldest),
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


def _chart(title: str, series: list[_Series], T: int, stretched: bool) -> Chart:
    scale = accuracy_scale(_ends(series), stretched)
    return Chart(
        title,
        FRAME,
        scale.stretched,
        task_ticks(FRAME, T),
        [(_y(scale, tick), f"{tick:g}") for tick in scale.ticks],
        [_line(s, T, scale) for s in series],
    )


def task_ticks(frame: Frame, tasks: int) -> list[tuple[float, str]]:
    """Places and labels of tasks below a drawing."""
    every = max(1, math.ceil(tasks / 12))
    return [(frame.x(i, tasks), str(i)) for i in range(1, tasks + 1, every)]


def _line(s: _Series, T: int, scale: AccuracyScale) -> Line:
    tasks, mean, error = s.tasks, s.mean, s.error
    if s.level:
        tasks, mean, error = [1, T], [mean[-1]] * 2, [error[-1]] * 2
    triples = list(zip(tasks, mean, error, strict=True))
    upper = [(FRAME.x(i, T), _y(scale, m + e)) for i, m, e in triples if not math.isnan(e)]
    lower = [(FRAME.x(i, T), _y(scale, m - e)) for i, m, e in triples if not math.isnan(e)]
    points = [
        Point(FRAME.x(i, T), _y(scale, m), f"{s.method}, {moment}: {with_spread(m, e, 2)} %")
        for i, m, e in triples
        for moment in ("all tasks at once" if s.level else f"after task {i}",)
    ]
    path = path_of([(p.x, p.y) for p in points])
    return Line(s.method, path, band_of(upper, lower), points, s.level)


def path_of(places: Sequence[tuple[float, float]]) -> str:
    """An SVG path through places."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)


def band_of(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]]) -> str:
    """An SVG path around what lies between two lines; empty where they are points."""
    return f"{path_of([*upper, *reversed(lower)])}Z" if len(upper) > 1 else ""


def _y(scale: AccuracyScale, accuracy: float) -> float:
    return FRAME.y(scale.place(min(accuracy, 100.0)))
