"""The tables of a part: Table 1, RETINA's scores, other data, detection; networks, calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pandas as pd

from vcl_radial.data.fundus.layouts import OTHER
from vcl_radial.metrics import METRICS
from vcl_radial.reporting.blocks import Cell, Column, Table
from vcl_radial.reporting.mean_table import Value, Values, mean_table, metric_column, score_column
from vcl_radial.reporting.scores import UNCERTAINTY_NAMES, main_uncertainty
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.retinopathy.report.published import PUBLISHED, SHARES, WORDS, auc

Methods: TypeAlias = Mapping[str, Sequence[FinishedRun]]
"""The runs of each method, in order."""

REFERENCES: Final = ("texture", "silhouette", "colour")
"""Methods that see no lesion; a network may reach their scores by the same shortcut."""

_AREAS: Final = ("accuracy_area", "nll_area", "auc_area", "auprc_area")
RETINA: Final = ("nll", "auprc", "ece", *_AREAS)
"""The scores of RETINA."""

BALANCED: Final = (
    *(f"balanced_{area}" for area in _AREAS),
    *("brier", "calibration_error", "sampling"),
)
"""Areas with equal class weights, and more scores."""

DETECTION: Final = ("ood_auc", "ood_auprc", "finds_artefacts")
"""Metrics of what uncertainty detects."""


def tweaks(recipe: Mapping[str, Any]) -> str:
    """Changes of a recipe from the plain objective with the posterior at its default width.

    The paper counts all of these among the tweaks that MFVI needs (Sections 4.1.2 and 5): means
    trained first, little noise at first, less of the KL, and epochs chosen by validation data.

    Args:
        recipe: the recipe of a run's spec.
    """
    named = []
    if recipe.get("strategy") == "ml_init_vcl":
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
    """Architecture, tweaks, parameters, and minutes of an epoch of all members."""
    spec = runs[0].spec
    members = spec.recipe["options"].get("members", 1)
    network = spec.recipe["network"]
    seconds = [run.environment["seconds_per_epoch"] for run in runs]
    return [
        f"{members} x " * (members > 1) + f"{network}, {spec.data['size']} px",
        tweaks(spec.recipe),
        f"{runs[0].environment['parameters']:,}",
        f"{sum(seconds) / len(seconds) / 60:.2g}",
    ]


def networks(methods: Methods, *, beside: bool = False) -> Table:
    """Architecture, tweaks, parameters and time of each method, beside the paper's."""
    rows: list[list[Cell | str]] = []
    for method, runs in methods.items():
        rows.append([label(method, runs), *_network(runs), str(len(runs))])
        if beside and (theirs := PUBLISHED.get(runs[0].spec.method)):
            facts = [theirs["network"], "", f"~{theirs['parameters']}", theirs["epoch_minutes"]]
            named = [f"paper: {theirs['name']}", *facts, ""]
            rows.append([Cell(text, published=True) for text in named])
    heads = [*text_columns("method", "network", "tweaks"), "parameters", "min / epoch", "seeds"]
    return Table(heads, rows)


def table_1(
    methods: Methods, means: pd.DataFrame, *, beside: bool = False, patients: bool = True
) -> Table:
    """The paper's Table 1 for a part: AUC and accuracy of the kept photographs, by share referred.

    Args:
        methods: the runs of each method.
        means: `scores.means` of one part, by each method's main uncertainty.
        beside: whether the paper's rows stand below ours; the paper has no accuracies.
        patients: whether errors over patients are shown beside those over seeds.
    """
    groups = by_method(methods, means)
    columns = [
        score_column(
            f"{name}, {share:.0%}",
            groups,
            {"metric": metric, "referred": share},
            within=patients,
            better="higher",
            aside=metric == "accuracy",
        )
        for metric, name in (("auc", "AUC"), ("accuracy", "accuracy"))
        for share in SHARES
    ]
    texts: dict[str, list[Cell | str]] = {
        method: [
            label(method, runs),
            UNCERTAINTY_NAMES.get(main_uncertainty(groups[method]["uncertainty"]), ""),
        ]
        for method, runs in methods.items()
    }
    title = "In % of what is kept when a share is referred"
    ours = mean_table(["method", "by"], texts, columns, title)
    if not beside:
        return ours
    rows: list[Sequence[Cell | str]] = []
    for runs, row in zip(methods.values(), ours.rows, strict=True):
        rows.append(row)
        if theirs := PUBLISHED.get(runs[0].spec.method):
            aucs = [auc(theirs["method"], share) for share in SHARES]
            named = [f"paper: {theirs['name']}", "", *aucs, *[""] * len(SHARES)]
            rows.append([Cell(text, published=True) for text in named])
    return replace(ours, rows=rows)


def balanced_accuracies(methods: Methods, means: pd.DataFrame) -> Table:
    """Balanced accuracy of the kept photographs, by the share referred."""
    groups = by_method(methods, means)
    columns = [
        score_column(
            f"{share:.0%} referred", groups, {"metric": "balanced_accuracy", "referred": share}
        )
        for share in SHARES
    ]
    title = "Balanced accuracy in % of what is kept"
    return mean_table(["method"], labels(methods), columns, title)


def scores_table(
    methods: Methods, means: pd.DataFrame, names: Sequence[str], title: str, patients: bool = True
) -> Table:
    """Metrics of a part, `RETINA` or `BALANCED`; sampling is left out if it moves no prediction."""
    still = not (means[means["metric"] == "sampling"]["mean"] > 0).any()
    groups = by_method(methods, means)
    columns = [
        metric_column(name, groups, within=patients)
        for name in names
        if not (still and name == "sampling")
    ]
    return mean_table(["method"], labels(methods), columns, title)


def shift(methods: Methods, means: pd.DataFrame, trained_on: str) -> Table | None:
    """AUC on the test part and on other data sets; None without other data sets."""
    parts = [name for name, _ in graded_parts(means)]
    if "test" not in parts or len(parts) < 2:
        return None
    groups = by_method(methods, means)
    columns = [
        score_column(
            trained_on if part == "test" else part,
            groups,
            {"metric": "auc", "referred": 0.0, "part": part},
            within=part != "test",
            better="higher",
        )
        for part in parts
    ]
    title = f"AUC in %, trained on {trained_on} and tested on"
    return mean_table(["method"], labels(methods), columns, title)


def shifts(method: str, means: pd.DataFrame, sets: Sequence[str]) -> Table:
    """AUC of one method on all data sets, with a row for each training set.

    Further columns show how its uncertainty detects photographs without a grade.

    Args:
        method: name of the method.
        means: `scores.means` of its runs by `data`, the set that they were trained on.
        sets: names of the sets, in order.
    """
    own = means["part"] == "test"
    means = means.assign(part=means["part"].where(~own, means["data"]))
    ungraded = [part for part in means["part"].unique() if part.endswith(OTHER)]
    groups = {name: rows for name in sets if len(rows := means[means["data"] == name])}
    scores = [(name, name, {"metric": "auc", "referred": 0.0}) for name in sets]
    scores += [(f"{name}: OOD", name, {"metric": "ood_auc"}) for name in ungraded]
    columns = [
        score_column(heading, groups, {**where, "part": part}, within=False, better="higher")
        for heading, part, where in scores
    ]
    seeds = {name: Value(rows["seeds"].max()) for name, rows in groups.items()}
    columns.append(Values("seeds", seeds, lambda row: 0))
    texts = {name: [name] for name in groups}
    return mean_table(["trained on"], texts, columns, f"{method}: AUC in % on")


def out_of_distribution(methods: Methods, means: pd.DataFrame) -> Table | None:
    """How well uncertainty detects other data and artefacts; None without such scores."""
    detections = means[means["metric"].isin(DETECTION)]
    if detections.empty:
        return None
    texts, groups = {}, {}
    for method, runs in methods.items():
        for by, name in UNCERTAINTY_NAMES.items():
            if len(rows := detections.query("method == @method and uncertainty == @by")):
                key = f"{method} by {by}"
                texts[key], groups[key] = [label(method, runs), name], rows
    columns = [
        score_column(
            f"{part}: {METRICS[name].heading}",
            groups,
            {"metric": name, "part": part},
            within=False,
        )
        for part, of_part in detections.groupby("part", sort=False)
        for name in DETECTION
        if (of_part["metric"] == name).any()
    ]
    return mean_table(["method", "by"], texts, columns)


def by_method(methods: Methods, means: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The means of each method."""
    return {method: means[means["method"] == method] for method in methods}


def labels(methods: Methods) -> dict[str, list[str]]:
    """The label of each method, as the text of its row."""
    return {method: [label(method, runs)] for method, runs in methods.items()}


def label(method: str, runs: Sequence[FinishedRun]) -> str:
    """The label of a method: references are marked, others have the paper's name beside."""
    if runs[0].spec.method in REFERENCES:
        return f"reference: {method}"
    name = WORDS.get(runs[0].spec.method)
    return f"{method} ({name})" if name else method


def text_columns(*headings: str) -> list[Column | str]:
    """Columns of text."""
    return [Column(heading, is_text=True) for heading in headings]


def graded_parts(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Name and rows of the parts with graded photographs, in order."""
    scored = table[table["metric"] == "auc"]["part"].unique()
    for name, part_rows in table[table["part"].isin(scored)].groupby("part", sort=False):
        yield str(name), part_rows
