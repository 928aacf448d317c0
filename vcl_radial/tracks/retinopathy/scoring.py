"""Tidy tables from draws: predictions, and their scores when some photographs are referred."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from vcl_radial.data.fundus import Photographs
from vcl_radial.files.reading import LARGE, read_text
from vcl_radial.likelihoods.predict import sampling
from vcl_radial.metrics import expected_calibration_error
from vcl_radial.metrics.referral import (
    Floats,
    Score,
    Whole,
    accuracy_at_half,
    auc,
    average_precision,
    balanced_accuracy,
    binary_nll,
    brier,
    calibration_curve,
    entropy,
    mutual_information,
)
from vcl_radial.metrics.retention import (
    Estimate,
    class_balanced,
    over_patients,
    ranks,
    resampled,
    retained,
    retention_areas,
)
from vcl_radial.tracks.retinopathy.prediction import probability
from vcl_radial.tracks.retinopathy.settings import VALIDATION

REFERRED: Final = tuple(round(0.05 * k, 2) for k in range(15))
"""Shares of referred photographs, 0 to 70 %; the paper's Table 1 has 0, 10, 20 and 30 %."""

RESAMPLES: Final = 100
"""Number of resamples of patients; the paper's Table 1 has the same number, of photographs."""

UNCERTAINTIES: Final = ("mutual_information", "entropy")

_ROUNDING: Final = 1e-12
"""Largest number of nats that rounding alone can cause."""

_CURVES: Final[dict[str, Score]] = {
    "auc": auc,
    "accuracy": accuracy_at_half,
    "balanced_accuracy": balanced_accuracy,
}
_SINGLE: Final = ("auprc", "nll", "brier")
_AREAS: Final = tuple(
    f"{balanced}{name}_area"
    for balanced in ("", "balanced_")
    for name in ("accuracy", "nll", "auc", "auprc")
)
COLUMNS: Final = (
    "after",
    "part",
    "metric",
    "uncertainty",
    "referred",
    "value",
    "standard_error",
    "lower",
    "upper",
)


PREDICTIONS: Final = (
    *("image", "patient", "part", "label", "probability", "entropy", "mutual_information"),
    *("after", "eye", "level", "site", "artefact", "log_odds", "sampling"),
)


Lines: TypeAlias = list[dict[str, Any]]
"""Rows of a table, as values by column."""


def prediction_table(
    after: str, part: str, photographs: Photographs, log_draws: Tensor
) -> pd.DataFrame:
    """Predictions, one line per photograph.

    Args:
        after: the last trained site.
        part: "validation", "test" or the name of another data set; for sites in sequence, the name
            of a site for its test part, or `<site> validation`.
        photographs: the N photographs.
        log_draws: log-probabilities under S draws, `[S, N, 2]`.

    Returns:
        The columns of `PREDICTIONS`. `label` is 1 for photographs that an expert should see, 0 for
        others, and -1 without a level: such a photograph is out of distribution. `probability` is
        the probability of label 1; log-odds, entropy and mutual information are in nats. For a
        single draw the mutual information is 0. `sampling` is
        `vcl_radial.likelihoods.predict.sampling`, in per cent. Log-odds resolve probabilities near
        0 and 1, which round to 1 from 37 on.
    """
    mean = log_draws.double().logsumexp(0) - math.log(len(log_draws))
    table = photographs.frame().rename(columns={"grade": "level"})
    table["after"], table["part"] = after, part
    table["label"] = np.where(photographs.grades < 0, -1, photographs.referable)
    table["probability"] = probability(log_draws).numpy()
    table["log_odds"] = (mean[:, 1] - mean[:, 0]).numpy()
    table["entropy"] = entropy(mean).numpy()
    table["mutual_information"] = mutual_information(log_draws).numpy()
    table["sampling"] = sampling(log_draws.double(), mean).numpy()
    return table[list(PREDICTIONS)]


def is_validation(part: str) -> bool:
    """Whether this is the name of a validation part."""
    return part.split()[-1:] == [VALIDATION]


def uncertainties(predictions: pd.DataFrame) -> list[str]:
    """Uncertainties that vary: draws that all agree have no mutual information.

    If no uncertainty varies, because a network is certain about all photographs, the entropy is
    returned; referral is then random.
    """
    return [n for n in UNCERTAINTIES if predictions[n].max() > _ROUNDING] or ["entropy"]


def score_table(
    predictions: pd.DataFrame, *, resamples: int = RESAMPLES, seed: int = 0
) -> pd.DataFrame:
    """All scores of a table of predictions, after each site.

    | metric                                 | meaning                                             |
    | -------------------------------------- | --------------------------------------------------- |
    | auc, accuracy, balanced_accuracy       | on kept photographs, at each share referred         |
    | auprc, nll, brier, ece,                | on all photographs; per cent, nats, -, per cent,    |
    | calibration_error, sampling            | per cent, per cent                                  |
    | accuracy_area, nll_area, auc_area,     | areas under the retention curves; per cent, nats    |
    | auprc_area, balanced_accuracy_area, ...|                                                     |
    | ood_auc, ood_auprc                     | of uncertainty as a detector of this part against   |
    |                                        | the test part                                       |
    | finds_artefacts                        | AUC of uncertainty for a photograph's artefact      |

    Validation parts are scored only if there are no other parts, as in a run that is scored on
    validation data. No table has both.

    Returns:
        `after, part, metric, uncertainty, referred, value, standard_error, lower, upper`; AUC and
        accuracies in per cent.
    """
    tables = [
        _scores(group, resamples, seed).assign(after=after)
        for after, group in scored(predictions).groupby("after", sort=False)
    ]
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)]


def scored(predictions: pd.DataFrame) -> pd.DataFrame:
    """Predictions without validation parts, unless there are no other parts."""
    held_out = predictions["part"].map(is_validation)
    return predictions if held_out.all() else predictions[~held_out]


def _scores(predictions: pd.DataFrame, resamples: int, seed: int) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    names = uncertainties(predictions)
    test = predictions[predictions["part"] == "test"]
    for part, part_rows in predictions.groupby("part", sort=False):
        labelled = part_rows[part_rows["label"] >= 0]
        lines = _labelled_scores(labelled, names, resamples, seed) if len(labelled) else []
        for uncertainty in names:
            lines += _artefacts(part_rows, uncertainty)
            if part != "test" and len(test):
                lines += _out_of_distribution(test, part_rows, uncertainty, resamples, seed)
        rows += [{"part": part, **line} for line in lines]
    return pd.DataFrame(rows, columns=list(COLUMNS[1:])).fillna({"uncertainty": ""})


def validation_scores(path: Path) -> dict[str, float]:
    """AUC, accuracy (per cent) and NLL (nats per photograph) of a run on its validation parts.

    They are means over sites, for the selected weights after the last site.

    Args:
        path: folder of a finished run.
    """
    predictions: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for row in csv.DictReader(read_text(path / "predictions.csv", LARGE).splitlines()):
        if is_validation(row["part"]):
            line = int(row["label"]), float(row["probability"]), float(row["log_odds"])
            predictions.setdefault((row["after"], row["part"]), []).append(line)
    last, _ = next(reversed(predictions))
    scores = []
    for (after, _), lines in predictions.items():
        if after == last:
            classes, predicted, log_odds = map(np.array, zip(*lines, strict=True))
            accuracy = accuracy_at_half(classes, predicted)
            scores.append((auc(classes, predicted), accuracy, binary_nll(classes, log_odds)))
    names = ("validation_auc", "validation_accuracy", "validation_nll")
    return dict(zip(names, np.mean(scores, 0).tolist(), strict=True))


def calibration_table(predictions: pd.DataFrame, bins: int = 10) -> pd.DataFrame:
    """The calibration curves: `after, part, lower, upper, count, predicted, observed`.

    The parts are the same as in `score_table`, without photographs of an unknown level.
    """
    labelled = scored(predictions)
    labelled = labelled[labelled["label"] >= 0]
    parts = []
    for (after, name), part_rows in labelled.groupby(["after", "part"], sort=False):
        curve = calibration_curve(
            part_rows["label"].to_numpy(), part_rows["probability"].to_numpy(), bins
        )
        parts.append(
            pd.DataFrame(
                {
                    "after": after,
                    "part": name,
                    "lower": curve.edges[:-1],
                    "upper": curve.edges[1:],
                    "count": curve.count,
                    "predicted": curve.predicted,
                    "observed": curve.observed,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _labelled_scores(
    labelled: pd.DataFrame, names: Sequence[str], resamples: int, seed: int
) -> Lines:
    # In ascending order, so that scores need not sort again for every resample.
    labelled = labelled.sort_values("probability", kind="stable")
    classes, predicted, log_odds = (
        labelled[name].to_numpy() for name in ("label", "probability", "log_odds")
    )
    draws = resampled(labelled["patient"].to_numpy(np.str_), resamples, seed)
    lines: Lines = []
    for uncertainty in names:
        rank = ranks(labelled[uncertainty].to_numpy())
        keys = [(metric, share) for metric in _CURVES for share in REFERRED]
        keys += [(metric, math.nan) for metric in _AREAS]
        estimate = over_patients(
            partial(_under_referral, classes, predicted, log_odds, rank), draws
        )
        for line, (metric, share) in zip(_lines(estimate), keys, strict=True):
            lines.append({"metric": metric, "uncertainty": uncertainty, "referred": share, **line})

    def single_scores(weights: Floats) -> Floats:
        return np.array(
            [
                average_precision(classes, predicted, weights),
                binary_nll(classes, log_odds, weights),
                brier(classes, predicted, weights),
            ]
        )

    for line, metric in zip(_lines(over_patients(single_scores, draws)), _SINGLE, strict=True):
        lines.append({"metric": metric, **line})
    ece = expected_calibration_error(_log_probabilities(log_odds), torch.tensor(classes))
    lines.append({"metric": "ece", "value": ece})
    error = calibration_curve(classes, predicted).error
    return [
        *lines,
        {"metric": "calibration_error", "value": error},
        {"metric": "sampling", "value": float(labelled["sampling"].mean())},
    ]


def _under_referral(
    classes: Whole, predicted: Floats, log_odds: Floats, rank: Whole, weights: Floats
) -> Floats:
    """The scores of `_CURVES` at each share of `REFERRED`, then the scores of `_AREAS`."""
    drawn = weights > 0
    classes, rank = classes[drawn], rank[drawn]
    predicted, log_odds, weights = predicted[drawn], log_odds[drawn], weights[drawn]
    kept = retained(rank, 1 - np.array(REFERRED), weights)
    areas = [
        area
        for row_weights in (weights, class_balanced(classes, weights))
        for area in retention_areas(classes, predicted, log_odds, rank, row_weights).values()
    ]
    return np.concatenate([*(score(classes, predicted, kept) for score in _CURVES.values()), areas])


def _artefacts(part_rows: pd.DataFrame, uncertainty: str) -> Lines:
    with_artefact = (part_rows["artefact"] != "").to_numpy().astype(np.int64)
    if not 0 < with_artefact.sum() < len(with_artefact):
        return []
    value = auc(with_artefact, part_rows[uncertainty].to_numpy())
    return [{"metric": "finds_artefacts", "uncertainty": uncertainty, "value": value}]


def _out_of_distribution(
    test: pd.DataFrame, other: pd.DataFrame, uncertainty: str, resamples: int, seed: int
) -> Lines:
    """How well the uncertainty separates another data set from the test part."""
    parts = pd.concat([test, other]).sort_values(uncertainty, kind="stable")
    is_other = (parts["part"] != "test").to_numpy().astype(np.int64)
    uncertain = parts[uncertainty].to_numpy()
    patients = parts["patient"].to_numpy(np.str_)
    draws = np.zeros((resamples, len(parts)))
    for number in (0, 1):
        rows = is_other == number
        draws[:, rows] = resampled(patients[rows], resamples, seed + number)

    def detection(weights: Floats) -> Floats:
        scores = (auc, average_precision)
        return np.array([score(is_other, uncertain, weights) for score in scores])

    lines = _lines(over_patients(detection, draws))
    return [
        {"metric": metric, "uncertainty": uncertainty, **line}
        for metric, line in zip(("ood_auc", "ood_auprc"), lines, strict=True)
    ]


def _lines(estimate: Estimate) -> list[dict[str, float]]:
    columns = ("value", "standard_error", "lower", "upper")
    values = zip(*(getattr(estimate, column) for column in columns), strict=True)
    return [dict(zip(columns, line, strict=True)) for line in values]


def _log_probabilities(log_odds: NDArray[np.float64]) -> Tensor:
    """Log-probabilities of both classes, `[N, 2]`, from the log-odds of class 1."""
    odds = torch.tensor(log_odds)
    return torch.stack([logsigmoid(-odds), logsigmoid(odds)], 1)
