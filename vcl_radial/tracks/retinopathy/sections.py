"""Sections of a report on photographs: Table 1 of the paper beside ours, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from vcl_radial.data.fundus import FUNDUS_DATASETS
from vcl_radial.errors import DataError
from vcl_radial.reporting import figures
from vcl_radial.reporting.blocks import Block, Figure, Section, Text
from vcl_radial.reporting.figures.differences import corrected, difference_table
from vcl_radial.reporting.figures.names import benchmark_label, data_label, method_label
from vcl_radial.reporting.figures.referral import (
    calibration_curves,
    pooled_calibration,
    referral_curves,
)
from vcl_radial.reporting.labels import file_name
from vcl_radial.reporting.scores import (
    IDENTITY,
    joined,
    means,
    over_tasks,
    ranked,
    runs_table,
    scores_table,
)
from vcl_radial.reporting.sections import heatmaps, matrix_table
from vcl_radial.reporting.stored import stored_table
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.retinopathy.report import comparisons, sheet, tables
from vcl_radial.tracks.retinopathy.report.published import CITATION
from vcl_radial.tracks.retinopathy.scoring import scored
from vcl_radial.tracks.retinopathy.settings import VALIDATION

ORDER: Final = (
    "naive",
    "ewc",
    "si",
    "laplace-diagonal",
    "laplace-kronecker",
    "mc-dropout",
    "gaussian-vcl",
    "gaussian-vcl-tweaked",
    "gaussian-vcl-truncated",
    "radial-vcl",
    "deep-ensemble",
    "radial-ensemble",
    "frozen-body",
    "single-task",
    "joint",
)
"""The reference, the paper's order, the ensembles, and the references of a sequence last."""

TEXTS: Final = dict.fromkeys(
    ("after", "part", "image", "patient", "eye", "site", "artefact", "metric", "uncertainty"), str
)
"""Columns of text: an empty cell is an empty text, and digits are no numbers."""

_HOW_TO_READ: Final = (
    "Mean ± standard error over seeds; in parentheses, where seeds have the same photographs, the "
    "standard error over patients, from 100 resamples. The photographs with the largest mutual "
    "information (MI) are referred first; those with the largest entropy where a method has a "
    "single draw."
)

_RETINA: Final = (
    "In %, NLL in nats. An area is the mean score of the most certain share of the photographs, "
    "over all shares; certain by MI or entropy as above."
)

_BESIDE: Final = (
    f"In italics: {CITATION}; there the standard error is over resamples of the photographs. It is "
    "of all EyePACS photographs at 512 x 512 pixels: compare the order of the methods and what "
    "referral gains, not the level."
)

_PREDICTIONS: Final = "predictions.csv"
_EVIDENCE: Final = (
    *("method", "seed", "after", "part", "patient", "label"),
    *("probability", "mutual_information"),
)
"""Columns of the evidence; the entropy follows from the probability."""

_PAPERS_METHODS: Final = ("radial-vcl", "gaussian-vcl")
"""The method that is compared with the second, seed by seed."""


def read(path: Path, environment: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Read `scores` and `calibration` from a finished run's folder.

    Raises:
        DataError: a table is damaged; the message names the file.
    """
    for key in ("photographs", "seconds_per_epoch", "parameters", "notices", "sites"):
        if key not in environment:
            raise DataError(f"environment.json: the key {key!r} is missing")
    return {name: read_table(path, name) for name in ("scores", "calibration")}


def read_table(path: Path, name: str) -> pd.DataFrame:
    """Read one of `vcl_radial.tracks.retinopathy.settings.TABLES`.

    Raises:
        DataError: the table cannot be read.
    """
    columns = () if name == "history" else ("part",)
    options = {"keep_default_na": False, "na_values": ""}
    table = stored_table(path / f"{name}.csv", columns, TEXTS, **options)
    return table.fillna({name: "" for name in TEXTS if name in table})


def evidence(runs: Sequence[FinishedRun]) -> dict[str, str]:
    """Merge `predictions.csv` of all runs that have one: the predictions for each patient.

    For sites in sequence, only the predictions after the last site are kept.

    If all patients of a part have numbers, they keep them. Otherwise patients are numbered "n1",
    "n2", ... in the order of their names, as a name may identify a photograph that must not be
    published.

    Returns:
        The columns `method, seed, after, part, patient, label, probability, mutual_information`, in
        four digits.

    Raises:
        DataError: predictions cannot be read.
    """
    with_predictions = [run for run in runs if (run.path / _PREDICTIONS).exists()]
    if not with_predictions:
        return {}
    tables = []
    for run in with_predictions:
        rows = read_table(run.path, "predictions").assign(method=run.method, seed=run.spec.seed)
        tables.append(rows[rows["after"] == run.environment["sites"][-1]])
    table = pd.concat(tables, ignore_index=True)
    # Decided by part, not by patient: the name of a photograph may happen to have no letter.
    numbered = table["patient"].str.fullmatch(r"\d+") & (table["patient"] != table["image"])
    named = ~numbered.groupby(table["part"]).transform("all")
    numbers = {name: k for k, name in enumerate(sorted(set(table["patient"][named])), start=1)}
    table.loc[named, "patient"] = [f"n{numbers[name]}" for name in table["patient"][named]]
    text = table[list(_EVIDENCE)].to_csv(index=False, float_format="%.4g")
    return {_PREDICTIONS: text}


def sections(runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
    """Sites in sequence, other data, each part, what uncertainty finds, differences, photographs.

    Args:
        runs: runs of one benchmark; methods are sorted in the paper's order, references last.
        data_dir: folder of the photographs that may be shown.
    """
    runs = sorted(runs, key=lambda run: _rank(run.spec.method))
    names = dict.fromkeys(run.method for run in runs)
    methods = {name: [run for run in runs if run.method == name] for name in names}
    sets = [name for name in FUNDUS_DATASETS if any(_trained_on(run) == name for run in runs)]
    if len(sets) > 1:
        return [_shifts(methods, sets)]
    scores, costs = scores_table(runs), runs_table(runs)
    run_scores = comparisons.by_run(scores, runs)
    benchmark, dataset, sites = runs[0].benchmark, costs["data"][0], runs[0].environment["sites"]
    all_means = means(scores)
    last = all_means[all_means["after"] == len(sites)]
    main = ranked(last)
    bins = joined(runs, "calibration")
    calibration = pooled_calibration(bins[bins["after"] == sites[-1]])
    carried = costs[["carried_bytes"]].dropna(axis=1, how="all")
    run_scores = run_scores.join(carried, on="run").drop(columns="run")
    counts = runs[0].environment["photographs"]
    note = f"Photographs: {counts['train']} to train on, {counts['test']} to test on."
    if len(sites) > 1:
        note += " All but the first section is of the networks after the last site."
    files = {"scores.csv": all_means, "runs.csv": run_scores, "calibration.csv": calibration}
    parts = [Section("", [Text(_HOW_TO_READ), Text(note)], _csv(files))]
    if len(sites) > 1:
        parts.append(_in_sequence(over_tasks(scores, "auc", "AUC"), costs, sites))
    if (elsewhere := tables.shift(methods, main, dataset)) is not None:
        parts.append(Section("On other data", [elsewhere]))
    details = []
    beside = dataset != "synthetic"
    for part, part_means in tables.graded_parts(main):
        # If seeds differ in their split, the error over seeds includes the error over patients.
        patients = part not in ("test", *sites) or _one_split(runs)
        named = f"{benchmark_label(benchmark)}, tested on {data_label(part)}"
        notices = _notices(runs)
        blocks = _part_blocks(
            methods, part_means, named, notices, beside and part == "test", patients
        )
        parts.append(Section(part, blocks))
        of_part = calibration[calibration["part"] == part]
        details.append(_details(methods, part_means, of_part, named, notices))
    if (detected := tables.out_of_distribution(methods, last)) is not None:
        note = (
            "AUC and AUPRC in % with which the uncertainty tells a data set from the test part, or "
            "an artefact. Chance is an AUC of 50, and an AUPRC of the share of the other data."
        )
        parts.append(Section("What uncertainty finds", [Text(note), detected]))
    parts += _differences(methods, run_scores[run_scores["after"] == sites[-1]])
    if sheets := _sheets(methods, data_dir):
        parts.append(Section("Most and least certain", sheets))
    networks = Section("Networks", [tables.networks(methods, beside=beside)], folded=True)
    return [*parts, *details, networks]


def _csv(files: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    return {name: figures.to_csv(table) for name, table in files.items()}


def _notices(runs: Sequence[FinishedRun]) -> list[str]:
    return list(dict.fromkeys(n for run in runs for n in run.environment["notices"]))


def _one_split(runs: Sequence[FinishedRun]) -> bool:
    """Whether all seeds have the same test part."""
    data = runs[0].spec.data
    return data.get("split_seed") is not None or data.get("split") == "published"


def _trained_on(run: FinishedRun) -> str:
    return str(run.spec.data["dataset"])


def _shifts(methods: tables.Methods, sets: Sequence[str]) -> Section:
    """Each method on its training data set and on the others."""
    note = (
        "A row is a network trained on one data set, a column the photographs that it is "
        "tested on: the test part of its own set, and all photographs of another. OOD is the "
        "AUC with which its uncertainty tells such photographs from the test part of its own "
        "set; they may be of another hospital too. Mean ± standard error over seeds, each with "
        "its own split of patients."
    )
    runs = [r for m in methods for name in sets for r in methods[m] if _trained_on(r) == name]
    scores = scores_table(runs).join(runs_table(runs)["data"], on="run")
    run_scores = comparisons.by_run(scores, runs)
    main = means(ranked(scores), ["data", *IDENTITY])
    shown = [tables.shifts(m, main[main["method"] == m], sets) for m in methods]
    run_scores.insert(3, "trained_on", [_trained_on(runs[run]) for run in run_scores["run"]])
    files = {"runs.csv": figures.to_csv(run_scores.drop(columns="run"))}
    return Section("On other hospitals", [Text(note), *shown], files)


def _in_sequence(sequence: pd.DataFrame, costs: pd.DataFrame, sites: Sequence[str]) -> Section:
    note = (
        f"The same network learns {', then '.join(sites)}. A method with a posterior takes the one "
        "that it has after a site as the prior of the next; one without goes on from its weights. "
        "`joint` learns all sites at once, and `single-task` each with a network of its own."
    )
    names = [data_label(site) for site in sites]
    draw = partial(figures.accuracy_curves, sequence, metric="AUC")
    curve = Figure("in-sequence", draw, "Mean AUC of the sites seen so far, after each site")
    by_sequence = comparisons.by_sequence(sequence, costs, sites)
    matrices = matrix_table(figures.all_over_seeds(sequence, metric="AUC"))
    table = comparisons.in_sequence(by_sequence, sites)
    blocks = [Text(note), table, *heatmaps(sequence, names, "AUC"), curve]
    files = _csv({"matrices.csv": matrices, "sequences.csv": by_sequence})
    return Section("Sites in sequence", blocks, files)


def _part_blocks(
    methods: tables.Methods,
    part_means: pd.DataFrame,
    named: str,
    notices: Sequence[str],
    beside: bool,
    patients: bool,
) -> list[Block]:
    """Table 1 of a part, its curves, and RETINA's scores."""
    part = str(part_means["part"].iloc[0])
    references = [m for m, runs in methods.items() if runs[0].spec.method in tables.REFERENCES]
    # References have far lower scores; drawing them would squeeze the lines of all networks.
    drawn = part_means[~part_means["method"].isin(references)]
    if drawn.empty:
        drawn = part_means
    draw = partial(referral_curves, drawn, f"{named}: referral", notices)
    alt = f"AUC and accuracy by the share referred, {part}"
    title = "Scores of RETINA (Band et al. 2021)"
    return [
        tables.table_1(methods, part_means, beside=beside, patients=patients),
        *([Text(_BESIDE)] if beside else []),
        Figure(f"referral-{file_name(part)}", draw, alt),
        tables.scores_table(methods, part_means, tables.RETINA, title, patients=False),
        Text(_RETINA),
    ]


def _details(
    methods: tables.Methods,
    part_means: pd.DataFrame,
    calibration: pd.DataFrame,
    named: str,
    notices: Sequence[str],
) -> Section:
    """Scores with equal class weights, and calibration."""
    part = str(part_means["part"].iloc[0])
    draw = partial(calibration_curves, calibration, part_means, f"{named}: calibration", notices)
    balanced = "Areas with classes that count alike, and other scores of all photographs"
    blocks: list[Block] = [
        tables.balanced_accuracies(methods, part_means),
        tables.scores_table(methods, part_means, tables.BALANCED, balanced),
        Figure(f"calibration-{file_name(part)}", draw, f"Calibration, {part}"),
    ]
    return Section(f"{part}: balanced scores and calibration", blocks, folded=True)


def _overlap(runs: Sequence[FinishedRun]) -> float:
    """Test patients over training patients of the seeds' splits; 0 if all have one split."""
    data = runs[0].spec.data
    if _one_split(runs):
        return 0.0
    return float(data[runs[0].spec.evaluate_on] / (1 - data["validation"] - data["test"]))


def _differences(methods: tables.Methods, run_scores: pd.DataFrame) -> list[Section]:
    """Compare the paper's method with Gaussian noise in recipes that are otherwise the same."""
    compared: dict[tuple[str, str], pd.DataFrame] = {}
    for method, runs in methods.items():
        name, reference = _PAPERS_METHODS
        gaussian = method.replace(name, reference, 1)
        if runs[0].spec.method == name and gaussian in methods:
            rows = comparisons.differences(run_scores, method, gaussian, _overlap(runs))
            if not rows.empty:
                compared[method, gaussian] = rows
    if not compared:
        return []
    family = corrected(pd.concat(compared.values(), ignore_index=True))
    parts: list[Section] = []
    for (method, gaussian), alone in compared.items():
        rows, family = family.iloc[: len(alone)], family.iloc[len(alone) :]
        note = (
            f"{method} minus {gaussian}, paired by seed. Where a seed has a split of patients to "
            "itself, the standard error and p are those of Nadeau and Bengio, as splits share "
            "patients; otherwise p is that of the exact two-sided sign-flip test. p is Holm's over "
            "all rows; fewer than six seeds have none. The effect size d_z is the mean of the "
            "differences over their standard deviation."
        )
        table = difference_table(rows, ("part", "score"), unit="")
        name = f"differences{f'-{len(parts)}' * bool(parts)}.csv"
        files = {name: figures.to_csv(rows)}
        parts.append(Section(f"{method} against {gaussian}", [Text(note), table], files))
    return parts


def _sheets(methods: tables.Methods, data_dir: Path | None) -> list[Block]:
    """A sheet for each part that may be shown, for the first seed of `radial-vcl` or another run.

    Committed runs have no predictions for single photographs, and so no sheet.
    """
    firsts = [runs[0] for runs in methods.values() if (runs[0].path / _PREDICTIONS).exists()]
    if not firsts:
        return []
    first = next((run for run in firsts if run.spec.method == _PAPERS_METHODS[0]), firsts[0])
    photographs_shown, missing = sheet.showable(first.spec.data, data_dir)
    predictions = scored(read_table(first.path, "predictions"))
    new = {link["task"] for link in first.spec.updates or ()}  # of folders that are not shown
    last = predictions[predictions["after"] == predictions["after"].iloc[-1]]
    last = last[~last["part"].str.removesuffix(f" {VALIDATION}").isin(new)]
    blocks: list[Block] = []
    for photographs in photographs_shown:
        for name, part_rows in last.groupby("part", sort=False):
            if sheet.has_all(part_rows, photographs):
                named = f"{benchmark_label(first.benchmark)}, tested on {data_label(str(name))}"
                title = f"{named}: {method_label(first.method)}, seed {first.spec.seed}"
                draw = partial(sheet.sheet, part_rows, photographs, title)
                stem = f"sheet-{file_name(str(name))}-{file_name(first.method)}"
                blocks.append(Figure(stem, draw, title))
    return [*blocks, *map(Text, missing)]


def _rank(method: str) -> int:
    if method in tables.REFERENCES:
        return len(ORDER) + 1 + tables.REFERENCES.index(method)
    return ORDER.index(method) if method in ORDER else len(ORDER)
