"""The page of a folder: tables, a sentence on each, and the picture."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures import sheet_of
from reports.price.measure import RADIAL
from reports.price.scores import SCORES, Score
from reports.price.shapes import DIAGONAL, FULL
from vcl_radial.errors import DataError
from vcl_radial.files.reading import open_text
from vcl_radial.metrics.seeds import mean_and_standard_error
from vcl_radial.metrics.verdicts import Correction
from vcl_radial.reporting import markdown
from vcl_radial.reporting.blocks import Table, with_spread
from vcl_radial.reporting.figures.drawing import key_line, logarithmic
from vcl_radial.reporting.figures.names import benchmark_label
from vcl_radial.reporting.figures.style import styles_in_order
from vcl_radial.reporting.rows import Difference, Rows

RESULTS = "results.csv.gz"
"""The table of a folder: the lines of `measure`, with command, settings, commit, processor and
seconds."""

FIGURE = "price"

_FAMILIES = ("radial", "diagonal", "blocks", "rank", "full")  # radial VCL is blue everywhere


def read(to: Path) -> pd.DataFrame:
    """The table of a folder; empty if there is none.

    Raises:
        DataError: the table is damaged.
    """
    path, keys = to / RESULTS, ["stream", "seed", "settings"]
    if not path.exists():
        return pd.DataFrame(columns=keys)
    try:
        with open_text(path) as file:
            options: Any = {"keep_default_na": False, "na_values": ["nan"]}
            table: pd.DataFrame = pd.read_csv(file, dtype={"commit": str}, **options)
            return table.set_index(keys).reset_index()[[*table]]
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise DataError(f"cannot be read ({error}); delete it, and measure again", path) from None


def benchmarks(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The lines of every benchmark; the lines of all its tables are together."""
    return {
        str(name): lines for name, lines in results.groupby(results["stream"].str.split("/").str[0])
    }


def chosen(lines: pd.DataFrame, by: str) -> pd.DataFrame:
    """The lines of a benchmark at the weights that a criterion has chosen.

    Args:
        lines: lines of a benchmark.
        by: the criterion, "two tasks" or "oracle".

    Returns:
        One line per shape and seed: means over tables, and medians of KL and weight.
    """
    kept = lines[lines["chosen"].isin([by, "both"])]
    over_tables = dict.fromkeys(("score", "forgetting", "nll", "ece", "bytes"), "mean")
    # Nats grow with rows: a mean over tables of 300 and 40,000 rows would depend only on the
    # largest.
    over_tables |= {"kl": "median", "weight": "median"}
    return kept.groupby(["shape", "seed"], sort=False).agg(over_tables).reset_index()


def score_of(lines: pd.DataFrame) -> Score:
    """The score of a benchmark."""
    return SCORES[lines["scored_by"].iloc[0]]


def contents(folder: Path, correct: Correction) -> dict[str, Any]:
    """The numbers of every benchmark of a folder, and the compared shapes, for the template.

    Args:
        folder: the folder of the table.
        correct: function that corrects p-values for the number of tests on the page.
    """
    table = benchmarks(read(folder))
    sections = [_section(name, lines, correct) for name, lines in table.items()]
    shapes = [FULL.name, *(radial.name for radial in RADIAL)]
    return {"benchmarks": sections, "shapes": shapes, "diagonal": DIAGONAL.name}


def _section(name: str, lines: pd.DataFrame, correct: Correction) -> dict[str, Any]:
    """The numbers of a benchmark by their names in the template."""
    seconds = lines.drop_duplicates(["stream", "seed"])["seconds"].sum()
    return {
        "name": name,
        "seeds": lines["seed"].nunique(),
        "tables": lines["stream"].nunique(),
        "table": markdown.table(_table(lines)),
        "heading": score_of(lines).heading,
        "differences": _differences(lines, correct),
        "peaks": _peaks(lines),
        "worst": _worst(lines),
        "command": f"{lines['command'].iloc[-1]} --seeds {lines['seed'].max() + 1}",
        "settings": "; ".join(sorted(set(lines["settings"]))) or "those of the track",
        "commits": ", ".join(sorted(set(map(str, lines["commit"])))),
        "processors": ", ".join(sorted(set(map(str, lines["processor"])))),
        "minutes": round(seconds / 60),
    }


def _table(lines: pd.DataFrame) -> Table:
    score = score_of(lines)
    two = chosen(lines, "two tasks").groupby("shape", sort=False)
    oracle = chosen(lines, "oracle").groupby("shape", sort=False)
    cells = pd.DataFrame(
        {
            score.heading: two["score"].agg(_spread(score.decimals)),
            "oracle": oracle["score"].agg(_spread(score.decimals)),
            "KL (nats)": two["kl"].mean().map(_rounded),
            "NLL (nats)": two["nll"].agg(_spread(3)),
            "ECE (%)": two["ece"].agg(_spread(1)),
            "forgetting": two["forgetting"].agg(_spread(score.decimals)),
            "bytes": two["bytes"].mean().map(_rounded),
            "weight": two["weight"].median().map(lambda w: f"{float(f'{w:.3g}'):,.10g}"),
        }
    )
    if two["ece"].count().sum() == 0:
        cells = cells.drop(columns=["NLL (nats)", "ECE (%)"])
    return Table(["carried", *cells], cells.reset_index().to_numpy().tolist())


def _spread(digits: int) -> Callable[[Iterable[float]], str]:
    return lambda values: with_spread(*mean_and_standard_error(values), digits)


def _rounded(value: float) -> str:
    """Three digits, in full."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def _differences(lines: pd.DataFrame, correct: Correction) -> dict[str, Difference]:
    """Scores of the full and the radial shapes minus the diagonal's score, in pairs of seeds."""
    rows = Rows(chosen(lines, "two tasks"), "results", correct)
    known, digits = rows.distinct("shape"), score_of(lines).decimals
    shapes = [FULL.name, *(radial.name for radial in RADIAL)] if DIAGONAL.name in known else []
    return {
        shape: rows.difference("score", shape, DIAGONAL.name, digits, by="shape")
        for shape in shapes
        if shape in known
    }


def _peaks(lines: pd.DataFrame) -> list[str]:
    """Scores of radial shapes at the best weight and beside it: how coarse the weights are."""
    score, peaks = score_of(lines), []
    for radial in RADIAL:
        scores = lines[lines["shape"] == radial.name].groupby("weight")["score"].mean()
        if scores.empty:
            continue
        best = int((score.sign * scores).argmax())
        around = scores.iloc[max(0, best - 1) : best + 2]
        values = ", ".join(f"{value:.{score.decimals}f}" for value in around)
        weights = ", ".join(f"{weight:,.10g}" for weight in around.index)
        last = ", the largest weight tried" if best == len(scores) - 1 else ""
        peaks.append(f"{radial.name} {values} (weights {weights}{last})")
    return peaks


def _worst(lines: pd.DataFrame) -> str:
    """The largest score by the two tasks with its table and seed, which a mean would hide."""
    kept = lines[lines["chosen"].isin(["two tasks", "both"])]
    worst = kept.sort_values("score").iloc[-1]
    table = worst["stream"].partition("/")[2]
    score = f"{worst['score']:.{score_of(lines).decimals}f}"
    return f"{score}: {worst['shape']}, {table}, seed {worst['seed']}"


def draw(results: pd.DataFrame) -> Figure:
    """Draw score and KL over the carried bytes for every benchmark."""
    styles = styles_in_order(_FAMILIES)
    all_lines = benchmarks(results)
    titles = [
        f"{benchmark_label(name)}: {heading}"
        for name, lines in all_lines.items()
        for heading in (score_of(lines).heading, "KL (nats)")
    ]
    key = [key_line(family, styles[family].colour) for family in _FAMILIES]
    with sheet_of(__file__, titles=titles, key=key) as (figure, panels):
        for number, lines in enumerate(all_lines.values()):
            means = chosen(lines, "two tasks").groupby("shape", sort=False).mean(numeric_only=True)
            for axes, value in zip(panels[2 * number :], ("score", "kl"), strict=False):
                for family in _FAMILIES:
                    of_family = means[means.index.str.startswith(family)].sort_values("bytes")
                    _draw_family(axes, of_family, value, styles[family].colour)
                axes.set_xlabel("bytes carried")
                logarithmic(axes, "xy" if value == "kl" else "x")
    return figure


def _draw_family(axes: Axes, means: pd.DataFrame, value: str, colour: str) -> None:
    """Draw one dot per shape, and a line through shapes that differ only in size."""
    if value == "kl":
        means = means[means["kl"] > 0]
    if means.index.str.startswith(("rank", "blocks")).all():
        axes.plot(means["bytes"], means[value], color=colour)
    for shape, size, height in zip(means.index, means["bytes"], means[value], strict=True):
        hollow = shape.endswith(("Eq. 44", "KL(p||q)"))
        look: dict[str, Any] = {"markersize": 4, "markerfacecolor": "none" if hollow else colour}
        axes.plot(size, height, "s" if "layer" in shape else "o", color=colour, **look)
