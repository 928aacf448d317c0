"""The report: what it says is what the runs say, and it shows nobody's photograph unasked."""

import dataclasses
import io
import math

import numpy as np
import pandas as pd
import pytest
from failing import refuses
from matplotlib.colors import to_hex
from retinopathy_helpers import finished_run, recipe, table

from vcl_radial.cli import main
from vcl_radial.data.fundus import SyntheticSettings, synthetic_photographs
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.metrics.referral import calibration_curve
from vcl_radial.reporting.blocks import Figure
from vcl_radial.reporting.figures import referral
from vcl_radial.reporting.gather import gather
from vcl_radial.reporting.scores import joined, ranked, scores_table
from vcl_radial.reporting.scores import means as means_of
from vcl_radial.reporting.write import report_of
from vcl_radial.runs.catalogue import names
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy.report import comparisons, published, sheet, tables
from vcl_radial.tracks.retinopathy.sections import evidence, read_table, sections
from vcl_radial.tracks.retinopathy.settings import TABLES


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two methods with two seeds each, and one without draws."""
    out = tmp_path_factory.mktemp("runs")
    for method, skill in (("radial-vcl", 1.0), ("gaussian-vcl", 0.4), ("naive", 0.8)):
        for seed in (0, 1):
            finished_run(out, method, seed, skill=skill)
    return out


def of_methods(folder):
    """The runs below a folder by their methods, in the paper's order."""
    runs, _ = gather(folder)
    names = ("naive", "gaussian-vcl", "radial-vcl")
    by_method = {name: [run for run in runs if run.method == name] for name in names}
    return {name: selected for name, selected in by_method.items() if selected}


@pytest.fixture(scope="module")
def methods(runs):
    return of_methods(runs)


def every(methods):
    return [run for of in methods.values() for run in of]


@pytest.fixture(scope="module")
def scores(methods):
    return scores_table(every(methods))


@pytest.fixture(scope="module")
def means(scores):
    return means_of(scores)


# Several data sets


def test_a_benchmark_of_several_sets_has_a_run_for_each_that_is_scored_on_the_others():
    runs = plan("retinopathy-shift", ["naive"], [0], {})
    sets = ["aptos", "odir", "idrid", "eyepacs-subset"]
    assert [run.data.dataset for run in runs] == sets
    for run in runs:
        others = [name for name in sets if name != run.data.dataset]
        assert run.data.shifted == [*others, "odir-other"]
    two = plan("retinopathy-shift", ["naive"], [0], {"data.sets": ["idrid", "aptos"]})
    assert [run.data.shifted[0] for run in two] == ["aptos", "idrid"]
    with refuses("data.dataset", "data.sets"):
        plan("retinopathy-shift", ["naive"], [0], {"data.dataset": "idrid"})
    with refuses("data.sets = 3"):
        plan("retinopathy-shift", ["naive"], [0], {"data.sets": 3})


def test_each_method_has_a_table_of_the_sets_that_it_was_trained_and_tested_on(tmp_path):
    for dataset in ("aptos", "idrid"):
        for seed, skill in ((0, 1.0), (1, 0.5)):
            finished_run(tmp_path, "naive", seed, skill=skill, dataset=dataset, elsewhere=True)
    runs, _ = gather(tmp_path)
    (shown,) = sections(runs, None)
    (table,) = shown.blocks[1:]
    assert table.title == "naive: AUC in % on"
    heads = [column.heading for column in table.columns[1:4]]
    assert heads == ["aptos", "idrid", "odir-other: OOD"]
    lines = pd.read_csv(io.StringIO(shown.files["runs.csv"]))
    assert len(lines) == 12
    for row, (one, other) in zip(
        rows_of(table)[1], (("aptos", "idrid"), ("idrid", "aptos")), strict=True
    ):
        assert row[0] == one
        of_set = lines[lines["trained_on"] == one]
        for name, text in zip(("aptos", "idrid"), row[1:3], strict=True):
            part = "test" if name == one else other
            mean, error = mean_and_standard_error(of_set[of_set["part"] == part]["auc"])
            assert text == f"{mean:.1f} ± {error:.1f}"
        unknown = of_set[of_set["part"] == "odir-other"]
        mean, error = mean_and_standard_error(unknown["ood_auc"])
        assert row[3] == f"{mean:.1f} ± {error:.1f}"


# Reading


def test_methods_come_in_the_papers_order_and_notices_come_first(runs):
    finished, passed_over = gather(runs)
    assert passed_over == []
    report = report_of(finished)
    table = report.sections[1].blocks[0]
    assert [row[0].text for row in table.body] == [
        "naive (deterministic)",
        "gaussian-vcl (MFVI)",
        "radial-vcl (Radial)",
    ]
    assert len(report.notices) == 1
    assert dict(report.facts)["seeds"] == ["0, 1"]


def test_other_data_make_another_benchmark_and_so_does_scoring_on_validation_data(tmp_path):
    folder = finished_run(tmp_path, "radial-vcl", 0)
    finished_run(tmp_path, "radial-vcl", 0, size=32)
    other = RunFolder(tmp_path, folder.run.model_copy(update={"evaluate_on": "validation"}))
    other.start()
    names = [*(f"{name}.csv" for name in TABLES), "environment.json"]
    other.finish({name: (folder.path / name).read_text() for name in names})
    finished, _ = gather(tmp_path)
    assert [run.benchmark for run in finished] == [
        "retinopathy-synthetic (size=32)",
        "retinopathy-synthetic (size=64)",
        "retinopathy-synthetic (validation data)",
    ]


def test_a_damaged_run_is_no_part_of_it_and_named(tmp_path):
    finished_run(tmp_path, "radial-vcl", 0)
    folder = finished_run(tmp_path, "gaussian-vcl", 0)
    text = (folder.path / "environment.json").read_text().replace("photographs", "pictures")
    names = [f"{name}.csv" for name in TABLES]
    files = {name: (folder.path / name).read_text() for name in names}
    folder.finish({**files, "environment.json": text})
    finished, (line,) = gather(tmp_path)
    assert [run.method for run in finished] == ["radial-vcl"]
    assert "environment.json: the key 'photographs' is missing" in line


# Tables


def test_means_are_those_of_the_runs(methods, means):
    runs = [run.tables["scores"] for run in methods["radial-vcl"]]
    at = {"metric": "auc", "uncertainty": "mutual_information", "referred": 0.0}
    values = [float(run.query(_is(at))["value"].iloc[0]) for run in runs]
    row = means[means["method"] == "radial-vcl"].query(_is(at)).iloc[0]
    expected = mean_and_standard_error(values)
    assert (row["mean"], row["standard_error"]) == pytest.approx(expected)
    assert row["seeds"] == 2
    assert values[0] != values[1]


def _is(values):
    return " and ".join(f"{key} == {value!r}" for key, value in values.items())


def rows_of(table):
    head, *rows = [column.heading for column in table.heads], *table.body
    return head, [[cell.text for cell in row] for row in rows]


def test_table_1_has_the_shares_referred_and_the_paper_beside(methods, means):
    table = tables.table_1(methods, ranked(means), beside=True)
    head, rows = rows_of(table)
    assert head[2:6] == ["AUC, 0%", "AUC, 10%", "AUC, 20%", "AUC, 30%"]
    assert head[6:] == ["accuracy, 0%", "accuracy, 10%", "accuracy, 20%", "accuracy, 30%"]
    named = {row[0]: row for row in rows}
    assert named["radial-vcl (Radial)"][1] == "MI"
    assert named["naive (deterministic)"][1] == "entropy"
    for column, name in ((5, "auc"), (9, "accuracy")):
        of_radial = ranked(means).query(
            f'metric == "{name}" and method == "radial-vcl" and referred == 0.3'
        )
        text = named["radial-vcl (Radial)"][column]
        assert text.startswith(f"{of_radial['mean'].iloc[0]:.1f} ± ")
    # The numbers of the paper, as printed there.
    assert named["paper: Radial"][2:6] == [
        *("94.3 (0.04)", "95.3 (0.06)", "96.1 (0.06)", "96.8 (0.04)")
    ]
    assert named["paper: MFVI"][5] == "62.6 (0.10)"
    assert {cell.published for row in table.body if "paper" in row[0].text for cell in row} == {
        True
    }
    alone = rows_of(tables.table_1(methods, ranked(means), patients=False))[1]
    assert not any("paper" in row[0] for row in alone)
    assert not any("(" in cell for row in alone for cell in row[1:])


def test_references_stand_below_all_networks(tmp_path):
    for method in ("texture", "naive", "own"):
        of_naive = finished_run(tmp_path / "made", "naive", 0)
        run = of_naive.run.model_copy(update={"method": method})
        folder = RunFolder(tmp_path / "runs", run)
        folder.start()
        folder.save("weights.pt", {"states": []})
        files = [*(f"{name}.csv" for name in TABLES), "environment.json"]
        folder.finish({name: (of_naive.path / name).read_text() for name in files})
    finished, _ = gather(tmp_path / "runs")
    (part,) = (part for part in sections(finished, None) if part.title == "test")
    rows = rows_of(part.blocks[0])[1]
    assert [row[0] for row in rows] == ["naive (deterministic)", "own", "reference: texture"]
    (picture,) = (block for block in part.blocks if isinstance(block, Figure))
    names = [text.get_text() for text in picture.draw().axes[1].get_legend().get_texts()]
    assert names == ["naive, by entropy", "own, by entropy"]


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"posterior": "none", "kl_weight": 0.5, "select": "last"}, "none"),
        ({"posterior": "gaussian", "initial_rho": -6.0, "select": "last"}, "none"),
        (
            {"posterior": "gaussian", "initial_noise": 7.1e-4, "kl_weight": 0.48},
            "noise 0.00071, KL × 0.48, best epoch",
        ),
        (
            {
                "strategy": "ml_init_vcl",
                "posterior": "gaussian",
                "truncation": 2,
                "select": "last",
            },
            "means first, truncated at 2",
        ),
    ],
)
def test_what_is_no_plain_objective_is_named_in_the_result(keys, named):
    assert tables.tweaks(recipe(**keys).model_dump(exclude_none=True)) == named


def test_the_published_rows_belong_to_shipped_recipes():
    aucs = {
        name: [float(row[f"auc_{100 * share:.0f}"]) for share in published.SHARES]
        for name, row in published.PUBLISHED.items()
    }
    assert set(aucs) <= set(names("method", "retinopathy"))
    # With referral every method but plain MFVI gains, and the radial ensemble is best throughout.
    assert [name for name, auc in aucs.items() if auc[-1] < auc[0]] == ["gaussian-vcl"]
    for share in range(len(published.SHARES)):
        assert max(aucs, key=lambda name: aucs[name][share]) == "radial-ensemble"


def test_pooled_calibration_is_that_of_all_photographs_together(methods):
    runs = methods["gaussian-vcl"]
    pooled = referral.pooled_calibration(joined(runs, "calibration"))
    predictions = pd.concat([read_table(run.path, "predictions") for run in runs])
    predicted, labels = (predictions[name].to_numpy() for name in ("probability", "label"))
    curve = calibration_curve(labels, predicted)
    some = curve.count > 0
    assert pooled["count"].tolist() == curve.count[some].tolist()
    np.testing.assert_allclose(pooled["predicted"], curve.predicted[some])
    np.testing.assert_allclose(pooled["observed"], curve.observed[some])
    assert pooled["lower"].is_monotonic_increasing


def test_what_uncertainty_finds_is_shown_by_both_uncertainties(methods, means):
    head, rows = rows_of(tables.out_of_distribution(methods, means))
    assert head == ["method", "by", "test: artefacts, AUC"]
    assert [row[:2] for row in rows] == [
        ["naive (deterministic)", "entropy"],
        ["gaussian-vcl (MFVI)", "MI"],
        ["gaussian-vcl (MFVI)", "entropy"],
        ["radial-vcl (Radial)", "MI"],
        ["radial-vcl (Radial)", "entropy"],
    ]
    assert tables.out_of_distribution(methods, means[means["metric"] == "auc"]) is None


def with_other_data(scores):
    """The scores with those of a data set that the AUC is 10 points lower on, and of one without
    levels."""
    other = scores.assign(part="idrid")
    other["value"] -= 10
    artefacts = scores[scores["metric"] == "finds_artefacts"]
    unknown = artefacts.assign(part="odir-other", metric="ood_auc")
    return pd.concat([scores, other, unknown], ignore_index=True)


def test_other_data_are_beside_the_test_part_where_there_are_some(methods, means, scores):
    assert tables.shift(methods, ranked(means), "aptos") is None
    table = tables.shift(methods, ranked(means_of(with_other_data(scores))), "aptos")
    head, rows = rows_of(table)
    assert head == ["method", "aptos", "idrid"]
    for row in rows:
        here, there = (float(text.split()[0]) for text in row[1:])
        assert here - there == pytest.approx(10, abs=0.11)


def test_scores_of_every_run_are_one_line_for_each_part(methods, scores):
    scores = with_other_data(scores)
    runs = comparisons.by_run(scores, every(methods))
    assert len(runs) == 3 * 2 * 3
    row = runs.query('method == "radial-vcl" and seed == 1 and part == "idrid"').iloc[0]
    of_run = scores.query('method == "radial-vcl" and seed == 1 and part == "idrid"')
    by = of_run["uncertainty"].isin(["mutual_information", ""])
    at = of_run[by & of_run["referred"].isin([0.3]) & (of_run["metric"] == "auc")]
    assert row["auc_30"] == at["value"].iloc[0]
    assert row["nll"] == of_run[of_run["metric"] == "nll"]["value"].iloc[0]
    assert math.isnan(runs.query('part == "odir-other"')["auc"].iloc[0])


def test_a_method_is_compared_with_another_seed_by_seed(methods, scores):
    runs = comparisons.by_run(with_other_data(scores), every(methods))
    by_part = comparisons.differences(runs, "radial-vcl", "gaussian-vcl")
    assert set(by_part["part"]) == {"test", "idrid"}
    wide = runs[runs["part"] == "test"].pivot(index="seed", columns="method", values="auc")
    gaps = wide["radial-vcl"] - wide["gaussian-vcl"]
    of_auc = by_part[by_part["score"] == "AUC (points)"].set_index("part")
    row = of_auc.loc["test"]
    expected = mean_and_standard_error(gaps)
    assert (row["difference"], row["difference_se"]) == pytest.approx(expected)
    assert math.isnan(row["p"])  # of two seeds there is no test
    shared = comparisons.differences(runs, "radial-vcl", "gaussian-vcl", overlap=25 / 60).iloc[0]
    assert shared["difference_se"] == pytest.approx(expected[1] * math.sqrt(1 + 2 * 25 / 60))
    assert shared["effect"] == pytest.approx(row["effect"])
    # All values of idrid are those of test less 10, and so are not the differences.
    assert of_auc.loc["idrid", "difference"] == pytest.approx(row["difference"])
    assert comparisons.differences(runs[runs["seed"] == 0], "radial-vcl", "gaussian-vcl").empty


def test_a_site_of_a_sequence_has_other_patients_with_every_seed(tmp_path):
    for seed in (0, 1):
        finished_run(tmp_path, "radial-vcl", seed, sites=("camera-a", "camera-b"))
    finished, _ = gather(tmp_path)
    shown = {part.title: part for part in sections(finished, None)}
    rows = rows_of(shown["camera-a"].blocks[0])[1]
    assert " ± " in rows[0][2]
    assert "(" not in rows[0][2]


# Pictures


def test_curves_are_drawn_through_their_means_with_errors_over_seeds(means):
    figure = referral.referral_curves(ranked(means), "title", [])
    assert [axes.get_title("left") for axes in figure.axes] == ["AUC (%)", "Accuracy (%)"]
    for axes, name in zip(figure.axes, ("auc", "accuracy"), strict=True):
        radial = ranked(means).query(f'metric == "{name}" and method == "radial-vcl"')
        (line,) = (c for c in axes.containers if c.get_label() == "radial VCL, by MI")
        x, y = (np.asarray(values, float) for values in line.lines[0].get_data())
        np.testing.assert_array_equal(y, radial["mean"])
        np.testing.assert_allclose(x, 100 * radial["referred"])
        (bars,) = line.lines[2]
        heights = {round(float(np.ptp(path.vertices[:, 1])), 6) for path in bars.get_paths()}
        assert heights <= set((2 * radial["standard_error"]).round(6))
    assert len({to_hex(c.lines[0].get_color()) for c in figure.axes[0].containers}) == 3


def test_the_bars_of_a_single_seed_are_those_of_its_patients(means):
    of_one = ranked(means[means["method"] == "radial-vcl"])
    of_one = of_one.assign(seeds=1, standard_error=math.nan)
    figure = referral.referral_curves(of_one, "title", [])
    (bars,) = figure.axes[0].containers[0].lines[2]
    (first, *_) = (float(np.ptp(path.vertices[:, 1])) for path in bars.get_paths())
    assert first == pytest.approx(2 * of_one.query("metric == 'auc'")["error_within"].iloc[0])
    caption = " ".join(text.get_text() for text in figure.texts).replace("\n", " ")
    assert "standard error over patients" in caption


def test_calibration_is_drawn_in_per_cent(methods, means):
    pooled = referral.pooled_calibration(joined(every(methods), "calibration"))
    figure = referral.calibration_curves(pooled, means, "title", [])
    of_gaussian = pooled[pooled["method"] == "gaussian-vcl"]
    curve = figure.axes[1].lines[-1]
    np.testing.assert_allclose(curve.get_xdata(), 100 * of_gaussian["predicted"])
    np.testing.assert_allclose(curve.get_ydata(), 100 * of_gaussian["observed"])


# Photographs


def test_only_drawn_pictures_and_idrid_are_ever_shown(tmp_path):
    sets, missing = sheet.showable({"patients": 3}, None)
    assert [photographs.synthetic for photographs in sets] == [True]
    assert missing == []
    for data in (
        {"dataset": "eyepacs-subset"},
        {"dataset": "kaggle-eyepacs"},
        {"dataset": "folder"},
    ):
        assert sheet.showable(data, tmp_path) == ([], [])
    for key in ("shifted", "then"):
        data = {"dataset": "eyepacs-subset", key: ["idrid"]}
        sets, missing = sheet.showable(data, tmp_path)
        assert sets == []
        assert "no sheet of idrid" in missing[0]


def test_the_captions_of_a_sheet_have_no_power_of_ten(methods):
    predictions = read_table(methods["radial-vcl"][0].path, "predictions")
    predictions["mutual_information"] = np.geomspace(3e-8, 2.0, len(predictions))
    photographs = synthetic_photographs(SyntheticSettings(patients=40))
    figure = sheet.sheet(predictions, photographs, "title")
    shown = [axes.get_xlabel().split("MI ")[1].split()[0] for axes in figure.axes]
    assert (shown[0], shown[6]) == ("2000", "<0.001")
    assert not any("e" in value for value in shown)


def test_the_sheet_shows_the_extremes_of_uncertainty(methods):
    photographs = synthetic_photographs(SyntheticSettings(patients=40))
    predictions = read_table(methods["radial-vcl"][0].path, "predictions")
    assert sheet.has_all(predictions, photographs)
    figure = sheet.sheet(predictions, photographs, "title")
    shown = [axes.get_xlabel().split() for axes in figure.axes]
    values = [float(label[label.index("MI") + 1]) for label in shown]
    ordered = 1000 * np.sort(predictions["mutual_information"])
    assert values[:6] == pytest.approx(ordered[::-1][:6], rel=5e-3)
    assert values[6:] == pytest.approx(ordered[:6], rel=5e-3)
    assert all(axes.images for axes in figure.axes)
    assert not sheet.has_all(predictions, table())  # other photographs
    assert not sheet.has_all(predictions.head(11), photographs)  # too few


def test_one_sheet_shows_a_part_whatever_the_number_of_methods(runs):
    finished, _ = gather(runs)
    (part,) = (part for part in sections(finished, None) if part.title == "Most and least certain")
    assert [block.name for block in part.blocks] == ["sheet-test-radial-vcl"]


# Committed runs


def test_a_page_is_made_anew_from_committed_runs_alone(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("vcl_radial.reporting.files.draw", lambda *_: b"<svg/>")
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(["report", str(runs), "--to", str(one), "--evidence"]) == 0
    page = one / "retinopathy-synthetic"
    kept = [*page.glob("evidence*"), page / "predictions.csv.xz"]
    assert len(kept) == 4
    (two / "retinopathy-synthetic").mkdir(parents=True)
    for path in kept:
        (two / "retinopathy-synthetic" / path.name).write_bytes(path.read_bytes())
    assert main(["report", str(two), "--to", str(two)]) == 0
    for name in ("scores.csv", "runs.csv", "calibration.csv", "differences.csv", "details.md"):
        again = two / "retinopathy-synthetic" / name
        assert again.read_text() == (page / name).read_text(), name
    first, _, rest = (page / "summary.md").read_text().partition("## Most and least certain")
    assert (two / "retinopathy-synthetic" / "summary.md").read_text() == (
        first + rest[rest.index("## Where") :]
    )


def test_committed_predictions_name_no_photograph(methods, tmp_path):
    (run,) = methods["radial-vcl"][:1]
    predictions = read_table(run.path, "predictions")
    text = evidence([run])["predictions.csv"]
    table = pd.read_csv(io.StringIO(text), dtype={"patient": str})
    assert list(table) == [
        *("method", "seed", "after", "part", "patient", "label"),
        *("probability", "mutual_information"),
    ]
    np.testing.assert_allclose(table["probability"], predictions["probability"], rtol=1e-3)
    # The same patient has the same number.
    pairs = set(zip(table["patient"], predictions["patient"], strict=True))
    assert len(pairs) == table["patient"].nunique() == predictions["patient"].nunique()
    assert all(name.removeprefix("n").isdecimal() for name in table["patient"])
    numbered = predictions.assign(patient=[f"{k // 2:04}" for k in range(len(predictions))])
    numbered.to_csv(tmp_path / "predictions.csv", index=False)
    text = evidence([dataclasses.replace(run, path=tmp_path)])["predictions.csv"]
    kept = pd.read_csv(io.StringIO(text), dtype={"patient": str})
    assert kept["patient"].tolist() == numbered["patient"].tolist()
    # Where one photograph's name stands for a patient, no name of the part is kept.
    numbered.loc[7, "patient"] = "00a1"
    for one in (numbered, numbered.assign(patient=numbered["image"])):
        one.to_csv(tmp_path / "predictions.csv", index=False)
        text = evidence([dataclasses.replace(run, path=tmp_path)])["predictions.csv"]
        hidden = pd.read_csv(io.StringIO(text), dtype={"patient": str})["patient"]
        assert hidden.str.fullmatch(r"n\d+").all()


# The whole


@pytest.mark.slow
@pytest.mark.drawn
def test_the_command_writes_a_page_and_all_that_it_names(runs, tmp_path, capsys):
    folder = runs / "retinopathy-synthetic"
    assert main(["report", str(folder), "--to", str(tmp_path)]) == 0
    assert "AUC" not in capsys.readouterr().err
    page = tmp_path / "retinopathy-synthetic"
    text = "".join((page / f"{name}.md").read_text() for name in ("summary", "details"))
    assert "SYNTHETIC" in text
    for stem in ("referral-test", "calibration-test", "sheet-test-radial-vcl"):
        assert f"({stem}.png)" in text
        assert all((page / f"{stem}.{kind}").stat().st_size > 1000 for kind in ("png", "svg"))
    scores = pd.read_csv(page / "scores.csv")
    assert {"auc", "accuracy", "finds_artefacts"} <= set(scores["metric"])
    assert "SYNTHETIC" in (tmp_path / "index.html").read_text()
