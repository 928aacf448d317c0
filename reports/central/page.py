"""Draw the picture of this page and make the page anew from the results beside it.

python -m reports central
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from reports.central import analysis, replicates
from reports.central.cells import Block, Done, blocks_of, read
from reports.central.runs import Comparison, means, runs, status
from vcl_radial.cli.arguments import Parser
from vcl_radial.metrics.seeds import mean_and_standard_error
from vcl_radial.reporting.blocks import with_spread
from vcl_radial.reporting.figures.drawing import Curve, key_line, line, logarithmic, sheet
from vcl_radial.reporting.figures.names import method_label
from vcl_radial.reporting.figures.style import INK, QUIET_INK, MethodStyle, method_styles, save

HERE = Path(__file__).parent
HEADS = {"split-fashion-multi-head": "many heads", "split-fashion-single-head": "one head"}
LINES = {"naive": "-", "l2": (0, (4, 2)), "frozen-body": (0, (5, 1.5, 1, 1.5))}
"""Methods without a start, and their dashes in the picture."""

Tables = list[tuple[str, pd.DataFrame]]
"""Tables with a line of text above each."""


def shown(table: pd.DataFrame) -> str:
    """A table in Markdown: a mean with its error in one cell, numbers with two decimals."""
    columns = [name for name in table if not str(name).endswith(" ±")]
    numeric = {name for name in columns if pd.api.types.is_numeric_dtype(table[name])}
    lines = [[str(name) for name in columns]]
    lines.append(["---:" if name in numeric else "---" for name in columns])
    for row in table.to_dict("records"):
        lines.append([_text(row[name], row.get(f"{name} ±"), str(name)) for name in columns])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _text(value: Any, error: float | None, name: str) -> str:
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "–"
    if error is not None:
        return with_spread(value, error, 2)
    return f"{value:.4g}" if name in ("sigma", "start", "weight", "p", "holm") else f"{value:.2f}"


def contents(folder: Path) -> dict[str, Any]:
    """What the template needs: blocks with their progress, block A, and tables of finished blocks.

    No block but A is analysed before all of its cells are finished; E2 and E4 are one family.
    """
    queue = HERE / "queue.toml"
    blocks = {block.name: block for block in blocks_of(queue)}
    done = read(folder, [*blocks.values()])
    progress = {name: status(block, queue, done) for name, block in blocks.items()}
    table = runs(blocks["A"], queue, done)
    comparisons = analysis.start_comparisons(table)
    origin = {(row["commit"], row["device"]) for rows in done.values() for row in rows}
    made = {
        name: make(blocks, queue, done)
        for name, (needed, make) in SECTIONS.items()
        if all(progress[block].complete for block in needed)
    }
    return {
        "blocks": {n: (b.table["title"], progress[n]) for n, b in blocks.items()},
        "start": table,
        "points": analysis.start(table),
        "comparisons": comparisons,
        "verdicts": {
            head: {"H1": analysis.h1(comparisons, name), "H2": analysis.h2(comparisons, name)}
            for name, head in HEADS.items()
        },
        "sections": made,
        "diverged": int(table["diverged"].sum()),
        "origin": sorted(origin),
        "shown": shown,
        "lines": start_lines(table),
        "difference": lambda head, family, at: difference(comparisons, head, family, at),
        "score": lambda *which: score(table, *which),
    }


def start_lines(table: pd.DataFrame) -> pd.DataFrame:
    """The first table of the page: both readings of -6, many heads beside one."""
    table = analysis.with_starts(table)
    kinds = [
        (f, at) for at in (analysis.SOFTPLUS, analysis.LOG_VARIANCE) for f in analysis.FAMILIES
    ]
    lines = []
    for family, at in [*kinds, *((name, math.nan) for name in LINES)]:
        of = table[table["family"] == family] if math.isnan(at) else _at(table, family, at)
        line: dict[str, Any] = {"carried": family}
        line["sigma"] = _range(of, "scale") if family in analysis.FAMILIES else "–"
        line["noise of a weight"] = _range(of, "noise") if family in analysis.FAMILIES else "–"
        heads = {head: of[of["benchmark"] == name] for name, head in HEADS.items()}
        for head, these in heads.items():
            mean, error = mean_and_standard_error(these["accuracy"])
            line[f"{head}: accuracy (%)"] = with_spread(mean, error, 1)
            if head == "many heads":
                line["learnt (%)"] = f"{these['learnt'].mean():.1f}"
                line["forgotten"] = f"{these['forgotten'].mean():z.1f}"
        lines.append(line)
    return pd.DataFrame(lines)


_at = analysis.at_start


def _range(table: pd.DataFrame, key: str) -> str:
    low, high = table[f"low_{key}"].min(), table[f"high_{key}"].max()
    return f"{low:.3g}" if math.isclose(low, high, rel_tol=0.01) else f"{low:.2g} to {high:.2g}"


def difference(comparisons: pd.DataFrame, head: str, family: str, at: float) -> Comparison:
    """A family minus the Gaussian at a start."""
    names = {head: name for name, head in HEADS.items()}
    of = comparisons[(comparisons.benchmark == names[head]) & (comparisons.family == family)]
    result: Comparison = of[of["start"] == at]["accuracy"].iloc[0]
    return result


def score(table: pd.DataFrame, head: str, family: str, at: float | None, name: str) -> float:
    """The mean of a score of a family at a start, or of a method without one."""
    names = {head: name for name, head in HEADS.items()}
    table = analysis.with_starts(table)
    of = table[table["family"] == family] if at is None else _at(table, family, at)
    return float(of[of["benchmark"] == names[head]][name].mean())


def _rows(block: Block, done: Done) -> pd.DataFrame:
    """All rows of a block, a column for each part of the cell's name."""
    return pd.DataFrame(
        [
            row | {"seed": int(row["seed"])}
            for n, rows in done.items()
            if n[0] == block.name
            for row in rows
        ]
    )


def _grid(blocks: dict[str, Block], queue: Path, done: Done) -> Tables:
    table = runs(blocks["B"], queue, done)
    return [
        ("The best cell of each (validation images).", analysis.grid_best(table)),
        ("The whole grid: mean accuracy of two seeds.", analysis.grid(table)),
    ]


def _mechanism(blocks: dict[str, Block], queue: Path, done: Done) -> Tables:
    table = runs(blocks["C"], queue, done)
    compared = analysis.mechanism_comparisons(table)
    counts = "; ".join(f"{name}: {analysis.tally(compared, name)}" for name in ("H3", "H4"))
    return [
        (f"Radial VCL minus other cells, in points, by seed. {counts}.", compared),
        ("Sampled prediction minus that of the mean network.", analysis.mean_networks(table)),
        ("All cells; *moved* and *at rest* are means over layers.", analysis.mechanism(table)),
    ]


def _frontier(blocks: dict[str, Block], queue: Path, done: Done) -> Tables:
    table = runs(blocks["D"], queue, done)
    points = analysis.frontier(table)
    test = table[(table["method"] == "frozen-body") & (table["part"] == "test")]
    return [
        ("H5, learnt accuracy at equal forgetting.", analysis.frontier_comparisons(points)),
        ("Scores at the matched weight.", analysis.frontier_means(points)),
        ("A frozen body forgets nothing.", means(test, ["benchmark", "method"])),
    ]


def _searches(blocks: dict[str, Block], queue: Path, done: Done) -> Tables:
    table = pd.concat([runs(blocks[name], queue, done) for name in ("E2", "E4")])
    text = "95 % t intervals over searches; Holm over the four tests on Omniglot and CIFAR-10."
    return [(text, replicates.searches(table))]


def _orders(blocks: dict[str, Block], queue: Path, done: Done) -> Tables:
    return [("H8, by order.", replicates.orders(runs(blocks["F"], queue, done)))]


def _photographs(name: str, others: list[str]) -> Callable[..., Tables]:
    def make(blocks: dict[str, Block], queue: Path, done: Done) -> Tables:
        rows = _rows(blocks[name], done)
        tables = [("After the last site (%).", replicates.photographs(rows))]
        if others:
            compared = replicates.photograph_comparisons(rows, others)
            tables.append(("AUC on test patients, paired by split.", compared))
        return tables

    return make


def _rudner(blocks: dict[str, Block], queue: Path, done: Done) -> Tables:
    return [("", means(runs(blocks["J"], queue, done), ["benchmark", "method"]))]


def _figures(blocks: dict[str, Block], queue: Path, done: Done) -> Tables:
    return [("Where the curves end.", replicates.figures(_rows(blocks["J2"], done)))]


def _repeats(name: str) -> Callable[..., Tables]:
    return lambda blocks, queue, done: [
        ("By 16 seeds.", replicates.repeats(runs(blocks[name], queue, done)))
    ]


POINT = ["naive", "gaussian-vcl", "gaussian-vcl-tweaked"]
SECTIONS: dict[str, tuple[tuple[str, ...], Callable[..., Tables]]] = {
    "Grid (B)": (("B",), _grid),
    "Mechanism (C)": (("C",), _mechanism),
    "Frontier (D)": (("D",), _frontier),
    "Confirmatory: searches (E2, E4)": (("E2", "E4"), _searches),
    "Orders of the classes (F)": (("F",), _orders),
    "VGG (G)": (("G",), _photographs("G", POINT)),
    "Table 1, six more splits (H)": (
        ("H",),
        _photographs("H", [*POINT, "mc-dropout", "deep-ensemble", "radial-ensemble"]),
    ),
    "Hospitals (I2)": (("I2",), _photographs("I2", [])),
    "Rudner's setting (J)": (("J",), _rudner),
    "Figures over seeds (J2)": (("J2",), _figures),
    "The confirmatory page's methods on a CPU (J3)": (("J3",), _repeats("J3")),
    "The same with the whole KL (J4)": (("J4",), _repeats("J4")),
}


def picture(points: pd.DataFrame) -> Figure:
    """Accuracy, learnt and forgotten over the start, with many heads and with one."""
    styles = method_styles(
        ["radial-vcl", "radial-vcl-matched-noise", "gaussian-vcl", "radial-vcl-eq44"]
    )
    looks: dict[str, MethodStyle] = {
        analysis.EQUAL_SIGMA: styles["radial-vcl"],
        analysis.EQUAL_NOISE: styles["radial-vcl-matched-noise"],
        "Gaussian": styles["gaussian-vcl"],
        "Eq. 44": styles["radial-vcl-eq44"],
    }
    key = [key_line(n, s.colour, **s.look, markersize=3.5) for n, s in looks.items()]
    key += [key_line(method_label(m), QUIET_INK, linestyle=dashes) for m, dashes in LINES.items()]
    scores = {"accuracy": "final accuracy (%)", "learnt": "learnt (%)", "forgotten": "forgotten"}
    titles = [f"{label}, {head}" for head in HEADS.values() for label in scores.values()]
    notes = ["split FashionMNIST", "means over 5 or 10 seeds, bands of one standard error"]
    notes.append("vertical lines: the two readings of -6, softplus(-6) and exp(-3)")
    title = "Radial and Gaussian posteriors by their start"
    with sheet(title, notes, titles, per_line=3, width=2.1, height=1.7, key=key) as (
        figure,
        all_axes,
    ):
        panels = ((score, name) for name in HEADS for score in scores)
        for axes, (score, name) in zip(all_axes, panels, strict=True):
            of = points[points["benchmark"] == name]
            for family, style in looks.items():
                lines = of[of["family"] == family].dropna(subset="start")
                y, error = lines[score], lines[f"{score} ±"].fillna(0.0)
                low, high = (y - error).tolist(), (y + error).tolist()
                curve = Curve(name, family, lines["start"].tolist(), y.tolist(), low, high)
                line(axes, curve, style.colour, **style.look, markersize=3.5)
            for method, dashes in LINES.items():
                level = of[of["family"] == method][score]
                if len(level):
                    axes.axhline(level.iloc[0], color=QUIET_INK, linestyle=dashes, linewidth=0.9)
            axes.set_xlabel("initial sigma or noise")
            axes.set_xlim(0.0009, 0.11)
            logarithmic(axes, "x")
            for start in (analysis.SOFTPLUS, analysis.LOG_VARIANCE):
                axes.axvline(start, color=INK, linewidth=0.5, zorder=1)
    return figure


def parser(program: str) -> Parser:
    """The parser of `python -m reports central`."""
    made = Parser(program, description=__doc__.partition("\n")[0])
    made.set_defaults(command=make)
    return made


def make(_: argparse.Namespace) -> int:
    """Draw the picture, and make the page."""
    from reports import pages

    save(picture(contents(HERE)["points"]), HERE / "start")
    pages.write([HERE / "README.md.jinja"])
    return 0
