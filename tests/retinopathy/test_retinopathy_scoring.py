"""Tables of predictions and scores, by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from retinopathy_helpers import table
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    log_loss,
    roc_auc_score,
)

from vcl_radial.metrics.referral import auc
from vcl_radial.metrics.retention import ranks, retention_areas
from vcl_radial.tracks.retinopathy.scoring import (
    PREDICTIONS,
    REFERRED,
    calibration_table,
    prediction_table,
    score_table,
    uncertainties,
    validation_scores,
)


def log_draws(*probabilities):
    """Draws `[S, N, 2]` from probabilities of class 1."""
    p = torch.tensor(probabilities, dtype=torch.float64)
    return torch.stack([1 - p, p], -1).log()


def predictions(patients=30, seed=0, name="test", bias=0.0):
    photographs = table(patients)
    rng = np.random.default_rng(seed)
    p = 0.2 + 0.6 * photographs.referable + rng.uniform(-0.2, 0.2, len(photographs))
    first, second = (p + bias).clip(0, 1), (p - bias).clip(0, 1)
    return prediction_table("here", name, photographs, log_draws(first.tolist(), second.tolist()))


def value(scores, metric, **where):
    rows = scores[scores["metric"] == metric]
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    (score,) = rows["value"]
    return score


def test_a_line_says_what_the_draws_say():
    photographs = table(1)
    rows = prediction_table("here", "test", photographs, log_draws([0.2, 0.6], [0.4, 0.6]))
    assert rows["image"].tolist() == ["000_left", "000_right"]
    assert rows["patient"].tolist() == ["000", "000"]
    assert rows["probability"].tolist() == pytest.approx([0.3, 0.6])
    entropy = [-p * math.log(p) - (1 - p) * math.log(1 - p) for p in (0.3, 0.6, 0.2, 0.4)]
    assert rows["entropy"].tolist() == pytest.approx(entropy[:2])
    expected = [entropy[0] - (entropy[2] + entropy[3]) / 2, 0]
    assert rows["mutual_information"].tolist() == pytest.approx(expected, abs=1e-12)
    assert rows["sampling"].tolist() == pytest.approx([20 / math.sqrt(2), 0], abs=1e-6)


def test_a_photograph_without_a_level_has_the_label_of_nobody_and_no_score():
    photographs = table(4)
    unknown = replace(photographs, rows=tuple(replace(r, grade=-1) for r in photographs.rows[:3]))
    draws = log_draws([0.2] * 3, [0.4] * 3)
    other = prediction_table("here", "odir-other", unknown, draws)
    assert set(other["label"]) == {-1}
    assert list(other) == list(PREDICTIONS)
    test = predictions()
    scores = score_table(pd.concat([test, other]), resamples=0)
    assert set(scores[scores["part"] == "odir-other"]["metric"]) == {
        "finds_artefacts",
        "ood_auc",
        "ood_auprc",
    }
    assert set(calibration_table(pd.concat([test, other]))["part"]) == {"test"}
    mixed = pd.concat([predictions(10, name="idrid"), other.assign(part="idrid")])
    of_idrid = score_table(pd.concat([test, mixed]), resamples=0).query("part == 'idrid'")
    assert value(of_idrid, "nll") == pytest.approx(
        value(score_table(predictions(10), resamples=0), "nll")
    )


def test_validation_photographs_are_scored_where_there_are_no_others_and_never_beside_them():
    validation, test = predictions(seed=1, name="a validation"), predictions(name="a")
    both = pd.concat([test, validation])
    pd.testing.assert_frame_equal(score_table(both), score_table(test))
    pd.testing.assert_frame_equal(calibration_table(both), calibration_table(test))
    assert set(score_table(validation, resamples=0)["part"]) == {"a validation"}


def test_a_single_draw_is_ranked_by_entropy_alone():
    rows = prediction_table("here", "test", table(1), log_draws([0.2, 0.6]))
    assert uncertainties(rows) == ["entropy"]
    assert uncertainties(predictions()) == ["entropy"]  # two draws that agree
    assert uncertainties(predictions(bias=0.1)) == ["mutual_information", "entropy"]


def test_scores_of_all_photographs_do_not_depend_on_what_would_be_referred():
    rows = predictions(bias=0.1)
    scores = score_table(rows, resamples=5)
    expected = auc(rows["label"].to_numpy(), rows["probability"].to_numpy())
    for uncertainty in ("entropy", "mutual_information"):
        none = {"uncertainty": uncertainty, "referred": 0.0}
        assert value(scores, "auc", **none) == pytest.approx(expected)
    p, y = rows["probability"], rows["label"]
    assert value(scores, "brier") == pytest.approx(((p - y) ** 2).mean())
    of_label = np.where(y == 1, p, 1 - p)
    assert value(scores, "nll") == pytest.approx(-np.log(of_label).mean())
    assert set(scores["referred"].dropna()) == set(REFERRED)


def test_every_score_stands_in_its_own_column():
    rows = predictions(bias=0.1)
    rng = np.random.default_rng(1)
    rows["probability"] = rng.uniform(0.05, 0.95, len(rows)).round(3)
    rows["log_odds"] = np.log(rows["probability"] / (1 - rows["probability"]))
    scores = score_table(rows, resamples=30, seed=2)
    y, p = rows["label"].to_numpy(), rows["probability"].to_numpy()
    measures = {
        "auc": lambda y, p: 100 * roc_auc_score(y, p),
        "accuracy": lambda y, p: 100 * accuracy_score(y, p > 0.5),
        "balanced_accuracy": lambda y, p: 100 * balanced_accuracy_score(y, p > 0.5),
    }
    seen = []
    for metric, measure in measures.items():
        for name in ("entropy", "mutual_information"):
            order = np.argsort(rows[name].to_numpy())
            for share in (0.0, 0.05, 0.2, 0.5):  # at whole rows of 60
                kept = order[: round(60 * (1 - share))]
                expected = measure(y[kept], p[kept])
                at = {"uncertainty": name, "referred": share}
                assert value(scores, metric, **at) == pytest.approx(expected)
                seen.append(expected)
    spread = scores[scores["metric"] == "auc"]
    assert (spread["standard_error"] > 0).all()
    assert (spread["lower"] < spread["value"]).all()
    assert (spread["upper"] > spread["lower"]).all()
    areas = retention_areas(y, p, rows["log_odds"].to_numpy(), ranks(rows["entropy"].to_numpy()))
    for name, area in areas.items():
        assert value(scores, f"{name}_area", uncertainty="entropy") == pytest.approx(area)
    assert value(scores, "auprc") == pytest.approx(100 * average_precision_score(y, p))
    assert value(scores, "nll") == pytest.approx(log_loss(y, p))
    confidence, bins = np.maximum(p, 1 - p), 15
    right = ((p > 0.5) == (y == 1)).astype(float)
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [abs((right - confidence)[bin_of == k].sum()) for k in range(bins)]
    assert value(scores, "ece") == pytest.approx(100 * sum(gaps) / len(p), abs=1e-3)
    assert value(scores, "calibration_error") != pytest.approx(value(scores, "ece"), abs=0.1)
    assert len({round(float(v), 6) for v in seen}) > len(seen) // 2


def test_a_network_that_is_sure_of_everything_has_scores_still():
    rows = predictions()
    rows["entropy"] = rows["mutual_information"] = 0.0
    scores = score_table(rows, resamples=0)
    expected = auc(rows["label"].to_numpy(), rows["probability"].to_numpy())
    assert value(scores, "auc", uncertainty="entropy", referred=0.0) == pytest.approx(expected)


def test_a_confident_mistake_costs_its_margin_and_no_more():
    # Of the first, healthy photographs the network is sure that they are referable.
    sure = torch.tensor([20.0, 20.0, 40.0, 40.0], dtype=torch.float64)
    draws = torch.stack([-sure, torch.zeros(4)], 1).log_softmax(-1)[None].float()
    rows = prediction_table("here", "test", table(2), draws)
    assert rows["label"].tolist() == [0, 0, 1, 1]
    assert value(score_table(rows, resamples=0), "nll") == pytest.approx(10)


def test_uncertainty_that_knows_of_artefacts_finds_all_of_them():
    rows = predictions()
    rows["mutual_information"] = (rows["artefact"] != "").astype(float)
    scores = score_table(rows, resamples=0)
    assert value(scores, "finds_artefacts", uncertainty="mutual_information") == 100
    blind = value(scores, "finds_artefacts", uncertainty="entropy")
    assert 20 < blind < 80
    rows["artefact"] = ""
    assert "finds_artefacts" not in set(score_table(rows, resamples=0)["metric"])


def test_a_shifted_set_is_scored_apart_and_found_by_uncertainty():
    test, other = predictions(), predictions(10, seed=1, name="idrid")
    other["entropy"] += 1
    scores = score_table(pd.concat([test, other]), resamples=0)
    assert value(scores, "ood_auc", uncertainty="entropy", part="idrid") == 100
    assert value(scores, "ood_auprc", uncertainty="entropy", part="idrid") == 100
    assert not len(scores[(scores["metric"] == "ood_auc") & (scores["part"] == "test")])
    alike = score_table(pd.concat([test, test.assign(part="idrid")]), resamples=20)
    assert value(alike, "ood_auc", uncertainty="entropy") == 50
    assert (alike[alike["metric"] == "ood_auc"]["standard_error"] > 0).all()
    alone = score_table(test, resamples=0)
    same = scores[(scores["part"] == "test")].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, same)


def test_the_calibration_table_counts_every_photograph_once():
    both = pd.concat([predictions(), predictions(10, name="idrid")])
    calibration = calibration_table(both)
    assert calibration.groupby("part")["count"].sum().to_dict() == {"test": 60, "idrid": 20}
    some = calibration[calibration["count"] > 0]
    assert ((some["predicted"] >= some["lower"]) & (some["predicted"] <= some["upper"])).all()
    total = (some["observed"] * some["count"]).sum()
    assert total == pytest.approx(both["label"].sum())


def test_a_search_is_told_the_mean_over_the_sites_after_the_last_one(tmp_path):
    rng = np.random.default_rng(0)
    parts = ("first validation", "second validation", "first")
    sets = [(after, name) for after in ("first", "second") for name in parts]
    rows = pd.DataFrame(
        [
            {"after": after, "part": name, "label": k % 3 == 0, "probability": rng.uniform()}
            for after, name in sets
            for k in range(20)
        ]
    ).astype({"label": int})
    rows["log_odds"] = np.log(rows["probability"] / (1 - rows["probability"]))
    rows.to_csv(tmp_path / "predictions.csv", index=False)
    last = [rows[(rows["after"] == "second") & (rows["part"] == name)] for name in parts[:2]]
    aucs = [100 * roc_auc_score(part["label"], part["probability"]) for part in last]
    nlls = [log_loss(part["label"], part["probability"]) for part in last]
    right = [100 * ((part["probability"] > 0.5) == part["label"]).mean() for part in last]
    assert validation_scores(tmp_path) == pytest.approx(
        {
            "validation_auc": sum(aucs) / 2,
            "validation_accuracy": sum(right) / 2,
            "validation_nll": sum(nlls) / 2,
        }
    )
