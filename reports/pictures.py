"""Draw pictures of pages anew from the CSV files beside them.

python -m reports pictures [PICTURE ...]
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.analysis import gradient_variance, truncated_noise
from reports.papers import picture
from reports.price import page
from reports.seeds.badam import toy_regression as toy
from vcl_radial.cli.arguments import Parser
from vcl_radial.reporting import figures
from vcl_radial.reporting.figures.drawing import (
    DASHED,
    Curve,
    dots,
    find,
    key_line,
    logarithmic,
    sheet,
)
from vcl_radial.reporting.figures.names import benchmark_label, data_label, method_label
from vcl_radial.reporting.figures.style import INK, QUIET_INK, MethodStyle, method_styles, save
from vcl_radial.reporting.scores import means
from vcl_radial.sweeps.figures import distribution
from vcl_radial.sweeps.levels import Levels
from vcl_radial.sweeps.results import SearchResult, TrialResult
from vcl_radial.tracks.regression import pictures

REPORTS = Path(__file__).parent

_CLOTHES = (
    "T-shirt/top, Trouser",
    "Pullover, Dress",
    "Coat, Sandal",
    "Shirt, Sneaker",
    "Bag, Ankle boot",
)
_PULLS = {
    ("l2", "none"): "l2",
    ("vcl", "gaussian"): "gaussian-vcl",
    ("vcl", "radial"): "radial-vcl",
    ("vcl", "low-rank"): "low-rank-vcl",
    ("laplace_kronecker", "none"): "laplace-kronecker",
}
"""Learner and posterior of a body, and the method that pulls it in the same way."""


def clothes() -> Figure:
    """Heatmaps of the methods on split FashionMNIST with many heads."""
    results = pd.read_csv(REPORTS / "split-fashion/split-fashion-multi-head/results.csv.gz")
    methods = ["radial-vcl", "radial-vcl-eq44", "gaussian-vcl", "naive"]
    return figures.heatmap_sheet(results, methods=methods, tasks=_CLOTHES)


def precision() -> Figure:
    """Accuracy over the tasks in bfloat16 and in float32."""
    return figures.accuracy_curves(pd.read_csv(REPORTS / "speed/precision/results.csv.gz"))


def layers() -> Figure:
    """The layer that all tasks share, with many heads."""
    table = pd.read_csv(REPORTS / "split-fashion-tuned/split-fashion-multi-head/layers.csv")
    methods = ["radial-vcl", "gaussian-vcl", "radial-vcl-proximal", "radial-vcl-eq44"]
    shown = table[table["method"].isin(methods)]
    return figures.layer_movement(shown.sort_values("method", key=lambda m: m.map(methods.index)))


def price() -> Figure:
    """Scores and KL of the shapes of an exact posterior over their bytes."""
    return page.draw(page.read(REPORTS / "price"))


def truncated() -> Figure:
    """Accuracy and NLL of a Gaussian posterior over the truncation of its noise."""
    record = json.loads((REPORTS / "analysis/truncated-noise.json").read_text(encoding="utf-8"))
    data, _, rest = dict(record["settings"])["data"].partition(",")
    numbers = {"images": f"{data_label(data)},{rest}"}
    return picture.draw(truncated_noise.__file__, _curves("analysis/truncated-noise"), numbers)


def variance() -> Figure:
    """Variance of the gradient over sigma, on logarithmic and on linear axes."""
    curves, C = _curves("analysis/gradient-variance"), max(gradient_variance.CHANNELS)
    top = 1.4 * find(curves, "over sigma", f"Gaussian, {C} channels").at(1.0)
    numbers = {"C": C, "published": gradient_variance.PUBLISHED, "linear_top": top}
    return picture.draw(gradient_variance.__file__, curves, numbers)


def toy_regression() -> Figure:
    """Predictive bands of a toy regression, a panel for each method."""
    return toy.draw(_curves("seeds/badam/toy-regression"))


def _curves(path: str) -> list[Curve]:
    """The curves of a figure of the papers."""
    table = pd.read_csv(REPORTS / f"{path}.csv.gz")
    curves = []
    for (panel, name), rows in table.groupby(["panel", "curve"], sort=False):
        x, y = rows["x"].tolist(), rows["y"].tolist()
        bands = (None if rows[end].isna().all() else rows[end].tolist() for end in ("low", "high"))
        curves.append(Curve(str(panel), str(name), x, y, *bands))
    return curves


def likelihoods() -> Figure:
    """Log-likelihoods on the UCI sets beside published ones."""
    return pictures.log_likelihoods(means(_uci("uci/results.csv.gz")))


def slices() -> Figure:
    """Log-likelihoods on the UCI sets in sequence and at once."""
    return pictures.over_slices(_uci("uci/in-sequence/results.csv.gz"))


def _uci(path: str) -> pd.DataFrame:
    """The table of scores of a `results.csv.gz` of the UCI pages."""
    names = {"set": "part", "split": "seed", "slice": "after"}
    return pd.read_csv(REPORTS / path).drop(columns="setting").rename(columns=names)


def reached(benchmark: str, trials: str, label: str, chance: float | None = None) -> Figure:
    """The share of configurations of a sweep that reach a score.

    Args:
        benchmark: the benchmark of the sweep.
        trials: its `trials.csv`.
        label: the name of the score.
        chance: the score without training, for the levels; None without levels.
    """
    table = pd.read_csv(REPORTS / trials)
    searched = [
        SearchResult(REPORTS, {"benchmark": benchmark, "method": method}, [*_trials(rows)])
        for method, rows in table.groupby("method", sort=False)
    ]
    level = None
    if chance is not None:
        way = table["score"].max() - chance
        level = Levels(chance + 0.1 * way, chance + 0.9 * way)
    return distribution(searched, label, level, "maximize")


def _trials(rows: pd.DataFrame) -> Iterator[TrialResult]:
    for row in rows.to_dict("records"):
        score = None if math.isnan(row["score"]) else row["score"]
        yield TrialResult(row["outcome"], score, number=row["trial"])


def pulled(benchmark: str) -> Figure:
    """Accuracy over the weight of the pull on a learning body; lines: a body that is held."""
    table = pd.read_csv(REPORTS / f"sweeps/learned-body/{benchmark}/trials.csv")
    table["standard_error"] = table["standard_error"].fillna(0.0)
    held = table[table["options.learner"] == "none"].set_index("options.from_start")["score"]
    groups = table.groupby(["options.learner", "posterior"], sort=False)
    by_method = {_PULLS[pull]: rows for pull, rows in groups if pull in _PULLS}
    styles = method_styles([m for m in _PULLS.values() if m in by_method])
    lines = {"held as it starts": (True, "-"), "held after task 1": (False, DASHED)}
    key = [key_line(method_label(m), look.colour, **look.look) for m, look in styles.items()]
    key += [key_line(name, QUIET_INK, linestyle=dashes) for name, (_, dashes) in lines.items()]
    notes = ["accuracy on validation images after all tasks", "bars: ± standard error over seeds"]
    title = f"{benchmark_label(benchmark)}: the pull on a learning body"
    with sheet(title, notes, [""], per_line=1, width=4.2, height=2.6, key=key, grid="y") as (
        figure,
        (axes,),
    ):
        for method, style in styles.items():
            _draw_pull(axes, by_method[method].sort_values("kl_weight"), method, style)
        for from_start, dashes in lines.values():
            axes.axhline(held[from_start], color=QUIET_INK, linestyle=dashes, linewidth=1.2)
        logarithmic(axes, "x", ticks=10)
        axes.set(xlabel="weight of the pull", ylabel="accuracy (%)")
    return figure


def _draw_pull(axes: Axes, rows: pd.DataFrame, method: str, style: MethodStyle) -> None:
    low, high = (rows["score"] + sign * rows["standard_error"] for sign in (-1, 1))
    values = (rows["kl_weight"].tolist(), rows["score"].tolist(), low.tolist(), high.tolist())
    look: dict[str, Any] = {**style.look, "markersize": 4, "linewidth": 1.4}
    dots(axes, Curve("", method, *values), style.colour, **look)


def exact_heads() -> Figure:
    """Accuracy of exact posteriors over their bytes."""
    table = pd.read_csv(REPORTS / "exact_heads/results.csv")
    table["form"] = table["format"].where(table["format"] != "packed float64", "")
    several = table["heads"].str.endswith("heads")
    table["kind"] = several.map({True: "several heads", False: "one head"}) + table["form"]
    looks = {
        "one head": (INK, "o", "one head, packed float64"),
        "several heads": (QUIET_INK, "s", "2, 4, 8 heads, packed float64"),
        "one headsquare float64": (INK, "^", "one head, square float64"),
        "one headpacked float32": (INK, "v", "one head, packed float32"),
    }
    key = [key_line(text, colour, marker=marker) for colour, marker, text in looks.values()]
    notes = ["random ReLU features of FashionMNIST, one head for ten classes", "means over seeds"]
    size: dict[str, Any] = {"per_line": 1, "width": 4.2, "height": 2.4}
    with sheet("Exact posteriors by their bytes", notes, [""], key=key, **size) as (
        figure,
        (axes,),
    ):
        for kind, (colour, marker, _) in looks.items():
            of = table[table["kind"] == kind].groupby("bytes")["accuracy"].mean()
            axes.plot(of.index / 1e6, of, color=colour, marker=marker, markersize=4.5)
        axes.set(xlabel="MB", ylabel="accuracy (%)", xlim=(0, None))
    return figure


def priors_and_schedules() -> Figure:
    """Accuracy with each first prior and schedule of the KL."""
    table = pd.read_csv(REPORTS / "sweeps/priors-and-schedules/S-settings.csv.gz")
    table = table[table["metric"] == "average_accuracy"]
    table["kind"] = table["settings"].map(_kind)
    kinds = sorted(table["kind"].unique(), key=lambda kind: (kind != "as usual", kind))[::-1]
    methods = ["radial-vcl", "gaussian-vcl"]
    styles = method_styles(methods)
    notes = ["split FashionMNIST, five epochs", "mean and standard error over seeds"]
    titles = [method_label(method) for method in methods]
    size: dict[str, Any] = {"per_line": 2, "width": 2.3, "height": 0.22 * len(kinds)}
    with sheet("First priors and schedules", notes, titles, grid="x", **size) as (figure, panels):
        for axes, (method, style) in zip(panels, styles.items(), strict=True):
            of = table[table["method"] == method].groupby("kind")["value"]
            mean, error = of.mean().reindex(kinds), of.sem().reindex(kinds)
            look: dict[str, Any] = {"markersize": 4, "elinewidth": 0.9}
            places = range(len(kinds))
            axes.errorbar(mean, places, xerr=error, color=style.colour, fmt=style.marker, **look)
            axes.axvline(mean["as usual"], color=QUIET_INK, linewidth=0.8, linestyle=DASHED)
            axes.set_yticks(places, kinds if method == methods[0] else [])
            axes.set(ylim=(-0.6, len(kinds) - 0.4), xlabel="accuracy (%)")
    return figure


def _kind(settings: str) -> str:
    """The key of a run that is not the usual one, in words."""
    narrow = "1/D" if "1/sqrt(D)" in settings else "1"
    if share := re.search(r"mixture_share=([\d.]+)", settings):
        return f"mixture, {share[1]} of N(0, {narrow})"
    if "scale-mixture" in settings:
        return f"mixture, 0.5 of N(0, {narrow})"
    if narrow != "1":
        return "N(0, 1/D)"
    schedule = re.search(r'kl_schedule="([a-z-]+)"', settings)
    return "as usual" if schedule is None or schedule[1] == "constant" else f"KL: {schedule[1]}"


_GRID = "sweeps/d2-grid/split-fashion-single-head/trials.csv"
_FIG4 = "sweeps/fig4-retinopathy"

PICTURES: dict[str, Callable[[], Figure]] = {
    "split-fashion/heatmaps": clothes,
    "split-fashion-tuned/layers": layers,
    "analysis/gradient-variance": variance,
    "analysis/truncated-noise": truncated,
    "seeds/badam/toy-regression": toy_regression,
    "speed/precision/accuracy-over-tasks": precision,
    "price/price": price,
    "exact_heads/bytes": exact_heads,
    "sweeps/priors-and-schedules/accuracy": priors_and_schedules,
    "uci/log-likelihood": likelihoods,
    "uci/in-sequence/in-sequence": slices,
    "sweeps/d2-grid/one-head": partial(
        reached, "split-fashion-single-head", _GRID, "average accuracy (%)"
    ),
    **{
        f"{_FIG4}/{name}": partial(
            reached, "retinopathy-idrid", f"{_FIG4}/{name}/trials.csv", "validation AUC (%)", 50.0
        )
        for name in ("idrid", "idrid-matched-noise")
    },
    **{
        f"sweeps/learned-body/{name}/along-learning-body": partial(pulled, name)
        for name in ("split-fashion-single-head", "permuted-mnist")
    },
}
"""Pictures below reports/, without their ending, and the functions that draw them."""


def parser(program: str) -> Parser:
    """The parser of `python -m reports pictures`."""
    made = Parser(program, description=__doc__.partition("\n")[0])
    names = f"default: all of {', '.join(PICTURES)}"
    made.add_argument("pictures", metavar="PICTURE", nargs="*", type=_known, help=names)
    made.set_defaults(command=draw)
    return made


def _known(name: str) -> str:
    if name not in PICTURES:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(PICTURES)}")
    return name


def draw(options: argparse.Namespace) -> int:
    """Draw the named pictures, or all."""
    for name in options.pictures or PICTURES:
        save(PICTURES[name](), REPORTS / name)
        print(REPORTS / name)
    return 0
