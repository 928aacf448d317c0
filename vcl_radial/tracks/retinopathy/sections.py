"""What a report shows of runs on photographs: Table 1 of the paper beside ours, and pictures."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.report import figures
from vcl_radial.report.labels import file_name
from vcl_radial.report.sequences import heatmaps, matrix_table
from vcl_radial.runs.finished import FinishedRun
from vcl_radial.runs.sections import Block, Figure, Section, Text
from vcl_radial.tracks.retinopathy.report import pictures, sheet, tables
from vcl_radial.tracks.retinopathy.report.published import CITATION
from vcl_radial.tracks.retinopathy.scoring import scored

ORDER: Final = (
    "texture",
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
"""Columns whose empty cells are empty texts, and whose digits are no numbers."""

_HOW_TO_READ: Final = (
    "Mean over seeds ± its standard error; in parentheses the standard error over patients, "
    "bootstrapped from 100 resamples and averaged over seeds. The photographs with the largest "
    "mutual information (MI) are referred first; those with the largest entropy where a method "
    "has a single draw."
)

_EYEPACS: Final = ("eyepacs-subset", "kaggle-eyepacs")

_BESIDE: Final = (
    f"In italics: {CITATION}; there the standard error is over resamples of the photographs. It is "
    "of all EyePACS photographs at 512 x 512 pixels: compare the order of the methods and what "
    "referral gains, not the level."
)


def read(path: Path, environment: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """`scores` and `calibration` of a finished run's folder.

    Raises:
        DataError: one is damaged; it begins with the file's name.
    """
    for key in ("photographs", "seconds_per_epoch", "parameters", "notices", "sites"):
        if key not in environment:
            raise DataError(f"environment.json: the key {key!r} is missing")
    return {name: read_table(path, name) for name in ("scores", "calibration")}


def read_table(path: Path, name: str) -> pd.DataFrame:
    """One of `vcl_radial.tracks.retinopathy.settings.TABLES`.

    Raises:
        DataError: it cannot be read.
    """
    try:
        text = (path / f"{name}.csv").read_text(encoding="utf-8")
        table = pd.read_csv(io.StringIO(text), dtype=TEXTS, keep_default_na=False, na_values="")
    except (OSError, ValueError) as error:
        raise DataError(f"{name}.csv: cannot be read: {error}; run it again") from None
    if name != "history" and "part" not in table:
        raise DataError(f"{name}.csv: has no column 'part'; run it again with this version")
    return table.fillna({name: "" for name in TEXTS if name in table})


def sections(runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
    """Sites in sequence, each test set, what uncertainty finds, the most and least certain.

    Args:
        runs: of one benchmark; methods come in the paper's order, then as they are.
        data_dir: where photographs that may be shown lie.
    """
    runs = sorted(runs, key=lambda run: _place(run.spec.method))
    methods = {
        m: [run for run in runs if run.method == m] for m in dict.fromkeys(r.method for r in runs)
    }
    benchmark = runs[0].benchmark
    notices = list(dict.fromkeys(n for run in runs for n in run.environment["notices"]))
    scores, sites = tables.put_together(runs, "scores"), runs[0].environment["sites"]
    means = tables.means(scores)
    last = means[means["after"] == sites[-1]]
    calibration = tables.put_together(runs, "calibration")
    pooled = tables.pooled_calibration(calibration[calibration["after"] == sites[-1]])
    after = " All but the first section is of the networks after the last site." * (len(sites) > 1)
    files = {
        "scores.csv": means.to_csv(index=False),
        "calibration.csv": pooled.to_csv(index=False),
    }
    parts = [Section("", [Text(_HOW_TO_READ + after)], files)]
    if len(sites) > 1:
        parts.append(_in_sequence(scores, sites, benchmark))
    data = runs[0].spec.data
    for name, of_set in tables.each_set(last):
        beside = data["dataset"] in _EYEPACS and name == "test"
        title, stem = f"{benchmark}, {name}", file_name(name)
        blocks = _of_set(methods, of_set, beside)
        referral = partial(
            pictures.referral_curves, of_set, "auc", "AUC", f"{title}: referral", notices
        )
        blocks.append(Figure(f"referral-{stem}", referral, f"AUC by the share referred, {name}"))
        calibrated = partial(
            pictures.calibration_curves,
            *(pooled[pooled["part"] == name], of_set, f"{title}: calibration", notices),
        )
        blocks.append(Figure(f"calibration-{stem}", calibrated, f"Calibration, {name}"))
        parts.append(Section(name, blocks))
    if (detected := tables.detection(last)) is not None:
        words = (
            "AUC in % with which the uncertainty of a photograph tells that it has an artefact, or "
            "that it is of another data set than the test part; 50 is chance."
        )
        parts.append(Section("What uncertainty finds", [Text(words), detected]))
    if shown := _sheets(methods, data_dir):
        parts.append(Section("Most and least certain", shown))
    counts = runs[0].environment["photographs"]
    words = f"Photographs: {counts['train']} to train on, {counts['test']} to test on."
    parts[0] = Section("", [*parts[0].blocks, Text(words)], files)
    return parts


def _in_sequence(scores: pd.DataFrame, sites: Sequence[str], benchmark: str) -> Section:
    words = (
        f"The same network learns {', then '.join(sites)}. A method with a posterior takes the one "
        "that it has after a site as the prior of the next; one without goes on from its weights. "
        "`joint` learns all sites at once, and `single-task` each with a network of its own."
    )
    results = tables.by_site(scores, sites, benchmark)
    draw = partial(figures.accuracy_curves, results, metric="AUC")
    curve = Figure("in-sequence", draw, "Mean AUC of the sites seen so far, after each site")
    files = {"matrices.csv": matrix_table(figures.all_over_seeds(results, metric="AUC"))}
    return Section(
        "Sites in sequence",
        [Text(words), tables.in_sequence(results, sites), *heatmaps(results, sites, "AUC"), curve],
        {name: figures.to_csv(table) for name, table in files.items()},
    )


def _of_set(methods: tables.Methods, of_set: pd.DataFrame, beside: bool) -> list[Block]:
    """The tables of a test set, beside the paper's where it is EyePACS's test part."""
    kept = "in % of what is kept"
    blocks: list[Block] = [tables.table_1(methods, of_set, "auc", f"AUC {kept}", beside=beside)]
    if beside:
        blocks.append(Text(_BESIDE))
        if (gains := tables.gains(methods, of_set)) is not None:
            blocks.append(gains)
    for metric, words in (("accuracy", "Accuracy"), ("balanced_accuracy", "Balanced accuracy")):
        blocks.append(tables.table_1(methods, of_set, metric, f"{words} {kept}", facts=False))
    return [*blocks, tables.single_scores(of_set)]


def _sheets(methods: tables.Methods, data_dir: Path | None) -> list[Block]:
    """A sheet for each method and each test set that may be shown, of its first seed."""
    first = next(iter(methods.values()))[0]
    found, missing = sheet.showable(first.spec.data, data_dir)
    blocks: list[Block] = []
    for photographs in found:
        for method, runs in methods.items():
            predictions = scored(read_table(runs[0].path, "predictions"))
            of_last = predictions[predictions["after"] == predictions["after"].iloc[-1]]
            for name, of_set in of_last.groupby("part", sort=False):
                if not sheet.has_all(of_set, photographs):
                    continue
                title = f"{first.benchmark}, {name}: {method}, seed {runs[0].spec.seed}"
                draw = partial(sheet.sheet, of_set, photographs, title)
                stem = f"sheet-{file_name(str(name))}-{file_name(method)}"
                blocks.append(Figure(stem, draw, title))
    return [*blocks, *map(Text, missing)]


def _place(method: str) -> int:
    return ORDER.index(method) if method in ORDER else len(ORDER)
