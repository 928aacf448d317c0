"""The tables of the report: means over seeds, Table 1, single scores, out of distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pandas as pd

from vcl_radial.metrics import forgetting, mean_and_standard_error
from vcl_radial.report.figures import all_over_seeds
from vcl_radial.report.figures.scores import SCORES
from vcl_radial.runs.finished import FinishedRun
from vcl_radial.runs.sections import Cell, Column, Table, mean_cell
from vcl_radial.tracks.retinopathy.report.published import SHARES, WORDS, Published, published

Methods: TypeAlias = Mapping[str, Sequence[FinishedRun]]
"""The runs of each method, in order."""

_KEYS: Final = ["method", "after", "part", "metric", "uncertainty", "referred"]

SINGLE: Final = {
    "nll": ("NLL (nats) ↓", 3),
    "brier": ("Brier ↓", 3),
    "ece": ("ECE (%) ↓", 1),
    "calibration_error": ("calibration error (%) ↓", 1),
}
"""Heading and decimals of the scores of all photographs of a set."""

DETECTION: Final = {
    "finds_artefacts": "artefacts",
    "ood_auc": "another data set",
}
"""What uncertainty is asked to find."""

UNCERTAINTY_NAMES: Final = {"mutual_information": "MI", "entropy": "entropy"}


def put_together(runs: Sequence[FinishedRun], table: str) -> pd.DataFrame:
    """One of their tables, of all runs, with `method` and `seed` in front."""
    tables = []
    for run in runs:
        one = run.tables[table].copy()
        one.insert(0, "method", run.method)
        one.insert(1, "seed", run.spec.seed)
        tables.append(one)
    return pd.concat(tables, ignore_index=True)


def means(scores: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds.

    Args:
        scores: `scores.csv` of many runs, with `method` and `seed`.

    Returns:
        `method, after, part, metric, uncertainty, referred, seeds, mean, se_seeds, se_patients,
        lower, upper`: `se_seeds` is the standard error over seeds (not a number for one seed),
        `se_patients` the bootstrapped one of a run and `lower, upper` its 5 and 95 %, averaged
        over seeds.
    """
    rows = []
    for keys, group in scores.groupby(_KEYS, sort=False, dropna=False):
        mean, error = mean_and_standard_error(group["value"])
        rest = (group[name].mean() for name in ("standard_error", "lower", "upper"))
        rows.append((*keys, group["seed"].nunique(), mean, error, *rest))
    names = ["seeds", "mean", "se_seeds", "se_patients", "lower", "upper"]
    return pd.DataFrame(rows, columns=[*_KEYS, *names])


def main_uncertainty(of_method: pd.DataFrame) -> str:
    """What a method's photographs are ranked by: mutual information, or entropy without draws."""
    found = set(of_method["uncertainty"])
    return next((name for name in UNCERTAINTY_NAMES if name in found), "")


def ranked(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of a metric by each method's `main_uncertainty`."""
    parts = [
        group[(group["metric"] == metric) & (group["uncertainty"] == main_uncertainty(group))]
        for _, group in table.groupby("method", sort=False)
    ]
    return pd.concat(parts)


def cell(rows: pd.DataFrame, decimals: int = 1) -> str:
    """`mean ± standard error over seeds (over patients)`, or "" where there is no value."""
    if rows.empty or math.isnan(row := rows.iloc[0]["mean"]):
        return ""
    text = f"{row:.{decimals}f}"
    if not math.isnan(seeds := rows.iloc[0]["se_seeds"]):
        text += f" ± {seeds:.{decimals}f}"
    if not math.isnan(patients := rows.iloc[0]["se_patients"]):
        text += f" ({patients:.{decimals}f})"
    return text


def tweaks(recipe: Mapping[str, Any]) -> str:
    """What a recipe does beyond the plain objective with the posterior at its first width.

    The paper counts all of these among the tweaks that MFVI needs (Sections 4.1.2 and 5): means
    trained first, little noise at first, less of the KL, and epochs chosen by validation data.

    Args:
        recipe: as a run's spec holds it.
    """
    named = []
    if recipe["pretrain_epochs"]:
        named.append("means first")
    if recipe["posterior"] != "none":
        if "initial_noise" in recipe:
            named.append(f"noise {recipe['initial_noise']:.2g}")
        if recipe["kl_weight"] != 1:
            named.append(f"KL × {recipe['kl_weight']:.2g}")
    if "truncation" in recipe:
        named.append(f"truncated at {recipe['truncation']:g}")
    if recipe["select"] == "best":
        named.append("best epoch")
    return ", ".join(named) or "none"


def _network(runs: Sequence[FinishedRun]) -> list[str]:
    """Architecture, tweaks, parameters, and minutes of an epoch, of all members."""
    spec = runs[0].spec
    # Runs of before have trained the members one after another.
    former = spec.recipe.get("members", 1)
    members = spec.recipe.get("options", {}).get("members", former)
    network = spec.recipe.get("network", f"VGG-16, {spec.recipe['channels']} channels")
    seconds = [run.environment["seconds_per_epoch"] for run in runs]
    return [
        f"{members} x " * (members > 1) + f"{network}, {spec.data['size']} px",
        tweaks(spec.recipe),
        f"{runs[0].environment['parameters']:,}",
        f"{former * sum(seconds) / len(seconds) / 60:.2g}",
    ]


def table_1(
    methods: Methods,
    of_set: pd.DataFrame,
    metric: str,
    title: str,
    *,
    facts: bool = True,
    beside: bool = False,
) -> Table:
    """The paper's Table 1 of a benchmark: a score of what is kept, by the share referred.

    Args:
        methods: the runs.
        of_set: what `means` gave, of one test set.
        metric: "auc", "accuracy" or "balanced_accuracy".
        title: of the table.
        facts: whether network, parameters and time are among the columns.
        beside: whether the paper's rows stand below ours; they have the facts.
    """
    shares: list[Column | str] = [f"{share:.0%} referred" for share in SHARES]
    of_network = [
        Column("network", words=True, aside=True),
        Column("tweaks", words=True, aside=True),
        Column("parameters", aside=True),
        Column("min / epoch", better="lower", aside=True),
    ]
    rows: list[list[Cell | str]] = []
    chosen = ranked(of_set, metric)
    for method, runs in methods.items():
        of_method = chosen[chosen["method"] == method]
        cells = [cell(of_method[of_method["referred"] == share]) for share in SHARES]
        by = UNCERTAINTY_NAMES.get(main_uncertainty(of_method), "")
        label = _beside_the_paper(method, runs) if beside else method
        rows.append([label, by, *(_network(runs) if facts else []), *cells, str(len(runs))])
        if beside and (theirs := published().get(runs[0].spec.method)):
            rows.append(_published_row(theirs))
    heads = [*_words("method", "by"), *(of_network if facts else []), *shares, "seeds"]
    return Table(heads, rows, title)


def _beside_the_paper(method: str, runs: Sequence[FinishedRun]) -> str:
    """The label of a method, with the paper's word for it."""
    word = WORDS.get(runs[0].spec.method)
    return f"{method} ({word})" if word else method


def _words(*headings: str) -> list[Column | str]:
    return [Column(heading, words=True) for heading in headings]


def _published_row(theirs: Published) -> list[Cell | str]:
    cells = [f"{theirs.auc[s]:.1f} ({theirs.standard_error[s]:.2f})" for s in SHARES]
    row = [f"paper: {theirs.name}", "", theirs.network, "", f"~{theirs.parameters}"]
    row += [f"{theirs.epoch_minutes:.1f}", *cells, ""]
    return [Cell(text, published=True) for text in row]


def gains(methods: Methods, of_set: pd.DataFrame) -> Table | None:
    """What referral adds to the AUC from 0 to 30 %, here and in the paper; None without a pair."""
    chosen = ranked(of_set, "auc")
    last = SHARES[-1]
    rows = []
    for method, runs in methods.items():
        value = chosen[chosen["method"] == method].set_index("referred")["mean"]
        theirs = published().get(runs[0].spec.method)
        if theirs is not None:
            gain = theirs.auc[last] - theirs.auc[0.0]
            label = _beside_the_paper(method, runs)
            rows.append([label, f"{value[last] - value[0.0]:+.1f}", f"{gain:+.1f}"])
    heads = [*_words("method"), f"AUC points gained, 0 to {last:.0%}", "in the paper"]
    return Table(heads, rows) if rows else None


def single_scores(of_set: pd.DataFrame) -> Table:
    """NLL, Brier score and calibration errors of each method."""
    rows = []
    for method, group in of_set.groupby("method", sort=False):
        values = [cell(group[group["metric"] == m], d) for m, (_, d) in SINGLE.items()]
        rows.append([str(method), *values])
    heads = [Column(heading, better="lower") for heading, _ in SINGLE.values()]
    return Table([*_words("method"), *heads], rows, "Of all photographs")


def detection(table: pd.DataFrame) -> Table | None:
    """AUC with which uncertainty finds artefacts and other data; None where nothing was asked."""
    found = table[table["metric"].isin(list(DETECTION))]
    if found.empty:
        return None
    pairs = [(m, str(s)) for m in DETECTION for s in found[found["metric"] == m]["part"].unique()]
    rows = []
    for method, of_method in found.groupby("method", sort=False):
        for by, name in UNCERTAINTY_NAMES.items():
            own = of_method[of_method["uncertainty"] == by]
            cells = [cell(own[(own["metric"] == m) & (own["part"] == s)]) for m, s in pairs]
            if any(cells):
                rows.append([str(method), name, *cells])
    return Table([*_words("method", "by"), *(f"{DETECTION[m]} ({s})" for m, s in pairs)], rows)


def by_site(scores: pd.DataFrame, sites: Sequence[str], benchmark: str) -> pd.DataFrame:
    """The AUC of each site after each, of all photographs, as the table of a task sequence.

    Args:
        scores: `scores.csv` of many runs, with `method` and `seed`.
        sites: in the order of training.
        benchmark: its name.

    Returns:
        `benchmark, method, seed, task_trained, task_evaluated, metric, value`; sites count from 1,
        the metric is "AUC", in per cent.
    """
    of_all = (scores["metric"] == "auc") & (scores["referred"] == 0) & scores["part"].isin(sites)
    # Before any is referred, every uncertainty has the same.
    auc = scores[of_all].drop_duplicates(["method", "seed", "after", "part"])
    numbers = {site: number for number, site in enumerate(sites, start=1)}
    return pd.DataFrame(
        {
            "benchmark": benchmark,
            "method": auc["method"],
            "seed": auc["seed"],
            "task_trained": auc["after"].map(numbers),
            "task_evaluated": auc["part"].map(numbers),
            "metric": "AUC",
            "value": auc["value"],
        }
    )


def in_sequence(results: pd.DataFrame, sites: Sequence[str]) -> Table:
    """What is left of the sites after the last: their mean AUC, forgetting, and the AUC of each.

    Args:
        results: what `by_site` gave.
        sites: in the order of training.
    """
    rows: list[list[Cell | str]] = []
    for summary in all_over_seeds(results, metric="AUC"):
        of_method = results[results["method"] == summary.method]
        runs = [run for _, run in of_method.groupby("seed")]
        of_sites = zip(summary.mean[-1], summary.error[-1], strict=True)
        lost = [points for run in runs if (points := forgetting(run, "AUC")) is not None]
        rows.append(
            [
                summary.method,
                mean_cell(summary.seen_mean[-1], summary.seen_error[-1], 1),
                mean_cell(*mean_and_standard_error(lost), 1),
                *(mean_cell(mean, error, 1) for mean, error in of_sites),
                str(len(runs)),
            ]
        )
    heads: list[Column | str] = [
        Column("method", words=True),
        Column("mean AUC (%) ↑", better="higher"),
        Column(
            SCORES["forgetting"].heading,
            better="lower",
            meaning="points of AUC that earlier sites fell from their best",
        ),
        *(Column(site, better="higher") for site in sites),
        "seeds",
    ]
    return Table(heads, rows, "AUC in % after the last site", sorted_by="mean AUC (%) ↑")


def each_set(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The test sets in their order."""
    for name, of_set in table.groupby("part", sort=False):
        yield str(name), of_set


def pooled_calibration(calibration: pd.DataFrame) -> pd.DataFrame:
    """Calibration curves with the photographs of all seeds together.

    Args:
        calibration: `calibration.csv` of many runs.

    Returns:
        `method, part, lower, upper, count, predicted, observed`; without empty bins.
    """
    some = calibration[calibration["count"] > 0].copy()
    for name in ("predicted", "observed"):
        some[name] *= some["count"]
    keys = ["method", "part", "lower", "upper"]
    sums = some.groupby(keys, sort=False)[["count", "predicted", "observed"]].sum().reset_index()
    for name in ("predicted", "observed"):
        sums[name] /= sums["count"]
    # One seed may have photographs in a bin where another has none.
    order = {name: place for place, name in enumerate(dict.fromkeys(sums["method"]))}
    return sums.sort_values(
        ["method", "lower"], key=lambda c: c.map(order) if c.name == "method" else c
    ).reset_index(drop=True)
