"""The page of a folder: tables, what they say in a sentence, and the picture."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from reports.family import Family
from reports.price.measure import RADIAL
from reports.price.scores import SCORES, Score
from reports.price.shapes import Diagonal, Full
from vcl_radial.metrics.seeds import mean_and_standard_error
from vcl_radial.reporting import markdown
from vcl_radial.reporting.figures.drawing import key_line, logarithmic, sheet
from vcl_radial.reporting.figures.style import method_styles
from vcl_radial.reporting.rows import Difference
from vcl_radial.runs.sections import (
    Block,
    Column,
    Figure,
    Report,
    Section,
    Table,
    Text,
    with_spread,
)

FIGURE = "price"

_INTRODUCTION = (
    "One linear model on fixed features with Gaussian noise, learned task after task. Its exact "
    "posterior is known, so that a shape of the carried posterior can be measured by what it "
    "loses. The precision is the same for every output: a posterior by class and a "
    "Kronecker-factored one are the full one here."
)

_COLUMNS = (
    "The weight of the prior is chosen by held-out points of the first two tasks; in the column "
    '"oracle" by the test points of all tasks in the end. KL is that of the carried posterior to '
    "the exact one after the last task; where there are several tables, their median, and of all "
    "else the mean. Mean ± standard error over seeds. p is that of the exact sign-flip test, by "
    "Holm's correction over all tests of this page; fewer than six seeds have none."
)

_FAMILIES = ("full", "rank", "blocks", "diagonal", "radial")


def benchmarks(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The lines of every benchmark, those of all its tables together."""
    return {
        str(name): lines for name, lines in results.groupby(results["stream"].str.split("/").str[0])
    }


def chosen(lines: pd.DataFrame, by: str) -> pd.DataFrame:
    """The lines of a benchmark at the weights that one of two criteria chose.

    Args:
        lines: lines of a benchmark.
        by: the criterion, "two tasks" or "oracle".

    Returns:
        A line for every shape and seed: means over tables, and medians of KL and weight.
    """
    kept = lines[lines["chosen"].isin([by, "both"])]
    over_tables = dict.fromkeys(("score", "forgetting", "nll", "ece", "bytes"), "mean")
    # Nats grow with rows: a mean over tables of 300 and 40,000 rows would be that of the largest.
    over_tables |= {"kl": "median", "weight": "median"}
    return kept.groupby(["shape", "seed"], sort=False).agg(over_tables).reset_index()


def score_of(lines: pd.DataFrame) -> Score:
    """The score of a benchmark."""
    return SCORES[lines["scored_by"].iloc[0]]


def page(results: pd.DataFrame) -> str:
    """The page, in Markdown."""
    family = Family()
    _sections(results, family)
    family.close()
    return markdown.page(Report("The price of the approximation", _sections(results, family)))


def _sections(results: pd.DataFrame, family: Family) -> list[Section]:
    figure = Figure(FIGURE, None, "Score and KL over bytes")
    parts = [Section("", [Text(_INTRODUCTION), figure, Text(_COLUMNS)])]
    for name, lines in benchmarks(results).items():
        seeds = len(set(lines["seed"]))
        more = f", {len(set(lines['stream']))} tables" if "/" in lines["stream"].iloc[0] else ""
        points = [*_sentences(lines, family), *_outliers(lines), *_origin(lines)]
        blocks: list[Block] = [_table(lines), Text(points=points)]
        parts.append(Section(f"{name} ({seeds} seeds{more})", blocks))
    return parts


def _table(lines: pd.DataFrame) -> Table:
    score = score_of(lines)
    two, oracle = chosen(lines, "two tasks"), chosen(lines, "oracle")
    has_classes = two["ece"].notna().any()
    columns: list[Column | str] = [
        Column("carried", is_text=True),
        score.heading,
        "oracle",
        "KL (nats)",
        *(["NLL (nats)", "ECE (%)"] if has_classes else []),
        "forgetting",
        "bytes",
        "weight",
    ]
    rows = []
    for shape in dict.fromkeys(two["shape"]):
        group, best = two[two["shape"] == shape], oracle[oracle["shape"] == shape]
        weight = group["weight"].median()
        cells = [
            shape,
            _spread(group["score"], score.decimals),
            _spread(best["score"], score.decimals),
            _rounded(group["kl"].mean()),
            *([_spread(group["nll"], 3), _spread(group["ece"], 1)] if has_classes else []),
            _spread(group["forgetting"], score.decimals),
            _rounded(group["bytes"].mean()),
            f"{float(f'{weight:.3g}'):,.10g}",
        ]
        rows.append(cells)
    return Table(columns, rows)


def _spread(values: Iterable[float], digits: int) -> str:
    return with_spread(*mean_and_standard_error(values), digits)


def _rounded(value: float) -> str:
    """Three digits, in full."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def _sentences(lines: pd.DataFrame, family: Family) -> list[str]:
    """The gain by the posterior's shape, beside its correlations."""
    two, score = chosen(lines, "two tasks"), score_of(lines)
    scores = two.pivot(index="seed", columns="shape", values="score")
    if Diagonal.name not in scores:
        return []
    changes = {
        shape: Difference(
            (scores[shape] - scores[Diagonal.name]).dropna().tolist(),
            score.decimals,
            correct=family.corrected,
        )
        for shape in (Full.name, *(radial.name for radial in RADIAL))
        if shape in scores
    }
    by_shape = "; ".join(f"{shape} {change}" for shape, change in changes.items())
    return [
        f"In pairs of seeds, {score.heading} minus that of {Diagonal.name}: {by_shape}.",
        *_peaks(lines),
    ]


def _peaks(lines: pd.DataFrame) -> list[str]:
    """How coarse the grid of weights is for radial posteriors, and whether it holds their best."""
    score, parts = score_of(lines), []
    for radial in RADIAL:
        group = lines[lines["shape"] == radial.name]
        scores = group.groupby("weight")["score"].mean()
        if scores.empty:
            continue
        best = int((scores if score.higher_is_better else -scores).argmax())
        around = scores.iloc[max(0, best - 1) : best + 2]
        values = ", ".join(f"{value:.{score.decimals}f}" for value in around)
        weights = ", ".join(f"{weight:,.10g}" for weight in around.index)
        last = ", the largest weight tried" if best == len(scores) - 1 else ""
        parts.append(f"{radial.name} {values} (weights {weights}{last})")
    if not parts:
        return []
    return [
        "The grid of weights is coarse for radial posteriors; the mean over seeds at the best "
        f"weight by test points and beside it: {'; '.join(parts)}."
    ]


def _outliers(lines: pd.DataFrame) -> list[str]:
    """The table and seed with the largest error by the two tasks, which a mean would hide."""
    if lines["stream"].nunique() == 1:
        return []
    kept = lines[lines["chosen"].isin(["two tasks", "both"])]
    worst = kept.sort_values("score").iloc[-1]
    table = str(worst["stream"]).partition("/")[2]
    decimals = score_of(lines).decimals
    return [
        f"The largest error is {worst['score']:.{decimals}f}: {worst['shape']}, {table}, "
        f"seed {worst['seed']}."
    ]


def _origin(lines: pd.DataFrame) -> list[str]:
    """The origin of a benchmark's numbers."""
    command, seeds = lines["command"].iloc[-1], max(lines["seed"]) + 1
    settings = "; ".join(sorted(set(lines["settings"])))
    commits = ", ".join(sorted(set(map(str, lines["commit"]))))
    minutes = round(lines.drop_duplicates(["stream", "seed"])["seconds"].sum() / 60)
    processors = ", ".join(sorted(set(map(str, lines["processor"]))))
    return [
        f"`{command} --seeds {seeds}`; features: {settings or 'those of the track'}; "
        f"commit {commits}; one thread of {processors}, {minutes or 'less than 1'} "
        f"minute{'s' * (minutes > 1)}"
    ]


def draw(results: pd.DataFrame) -> Picture:
    """Draw score and KL over the carried bytes for every benchmark."""
    all_lines = benchmarks(results)
    colours = dict(
        zip(_FAMILIES, (s.colour for s in method_styles(_FAMILIES).values()), strict=True)
    )
    titles = [
        f"{name}: {heading}"
        for name, lines in all_lines.items()
        for heading in (score_of(lines).heading, "KL (nats)")
    ]
    key = [key_line(name, colour) for name, colour in colours.items()]
    notes = [
        "mean over seeds, the prior's weight chosen on two tasks",
        "the KL of full is 0: it has no dot",
        "squares: radial by layer",
        "hollow: radial of Eq. 44, diagonal of KL(p||q)",
    ]
    title = "The price of the approximation"
    with sheet(title, notes, titles, per_line=2, width=3.2, height=2.2, key=key) as (
        figure,
        all_axes,
    ):
        for number, lines in enumerate(all_lines.values()):
            means = chosen(lines, "two tasks").groupby("shape", sort=False).mean(numeric_only=True)
            for axes, value in zip(all_axes[2 * number :], ("score", "kl"), strict=False):
                _panel(axes, means, value, colours)
    return figure


def _panel(axes: Axes, means: pd.DataFrame, value: str, colours: dict[str, str]) -> None:
    for family, colour in colours.items():
        family_means = means[means.index.str.startswith(family)].sort_values("bytes")
        if value == "kl":
            family_means = family_means[family_means["kl"] > 0]
        if family in ("rank", "blocks"):
            axes.plot(family_means["bytes"], family_means[value], color=colour)
        for shape, at, height in zip(
            family_means.index, family_means["bytes"], family_means[value], strict=True
        ):
            marker = "s" if "layer" in shape else "o"
            hollow = shape.endswith(("Eq. 44", "KL(p||q)"))
            fill = "none" if hollow else colour
            axes.plot(at, height, marker, color=colour, markersize=4, markerfacecolor=fill)
    axes.set_xlabel("bytes carried")
    logarithmic(axes, "xy" if value == "kl" else "x")
