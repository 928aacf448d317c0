"""One network on one site after another: the posterior becomes the prior, and resumes exactly."""

import dataclasses
import io
import json

import numpy as np
import pandas as pd
import pytest
import retinopathy_helpers
import torch
from failing import refuses
from retinopathy_helpers import Training, assert_stopping_changes_no_file, execute, recipe, run_of

from vcl_radial.errors import DataError
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.nn import kl_divergence
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.reporting.blocks import Figure, Table
from vcl_radial.reporting.gather import gather
from vcl_radial.reporting.scores import over_tasks, scores_table
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.retinopathy.parts import parts_of
from vcl_radial.tracks.retinopathy.prepare import all_test_sets, prepare
from vcl_radial.tracks.retinopathy.sections import evidence, sections
from vcl_radial.tracks.retinopathy.settings import DataSettings
from vcl_radial.tracks.retinopathy.training import together


def trained(site, **keys):
    return Training(recipe(**keys), site, seed=0).run()


@pytest.mark.parametrize("posterior", ["radial", "gaussian"])
def test_the_posterior_after_a_site_is_the_prior_of_the_next(sites, posterior):
    first = Training(recipe(posterior=posterior, epochs=2), sites[0], seed=0)
    first.run_epoch()
    moved = kl_divergence(first.network, []).item()
    weights = first.carried()
    second = Training(recipe(posterior=posterior), sites[1], seed=0, number=1, start=weights)
    blocks = [m for m in second.network.modules() if isinstance(m, PosteriorBlock)]
    before = [m for m in first.network.modules() if isinstance(m, PosteriorBlock)]
    assert blocks
    for block, old in zip(blocks, before, strict=True):
        assert torch.equal(block.prior_mean, old.mean)
        assert torch.equal(block.prior_scale, old.scale())
        assert block.prior_family is block.family
        assert torch.equal(block.mean, old.mean)
    start = kl_divergence(second.network, []).item()
    assert moved > 100 * abs(start)
    second.run_epoch()
    assert kl_divergence(second.network, []).item() > abs(start)


def test_without_a_posterior_the_weights_go_on(sites):
    weights = trained(sites[0], posterior="none", epochs=1).carried()
    second = Training(recipe(posterior="none"), sites[1], seed=0, number=1, start=weights)
    assert all(
        torch.equal(v, weights["network"][k]) for k, v in second.network.state_dict().items()
    )


def test_means_are_trained_first_on_the_first_site_only(sites):
    keys = {"strategy": "ml_init_vcl", "options": {"ml_epochs": 1}, "epochs": 1}
    weights = trained(sites[0], posterior="gaussian", **keys).carried()
    second = Training(
        recipe(posterior="gaussian", **keys), sites[1], seed=0, number=1, start=weights
    )
    steps = []
    second.run_epoch(lambda: steps.append(1))
    assert len(steps) == second.epoch_steps


def test_a_strong_prior_holds_the_network_where_it_was(sites):
    start = trained(sites[0], posterior="gaussian", epochs=1).carried()
    means_before = start["network"]
    moved = []
    for weight in (0.0, 1e5):
        keys = {"posterior": "gaussian", "kl_weight": weight, "epochs": 1, "select": "last"}
        second = Training(recipe(**keys), sites[1], seed=0, number=1, start=start)
        second.run_epoch()
        now = second.carried()["network"]
        means = [name for name in now if name.endswith(".mean")]
        moved.append(sum((now[name] - means_before[name]).norm().item() for name in means))
    assert moved[1] < 0.5 * moved[0]


@pytest.mark.slow
def test_a_sequence_that_is_stopped_anywhere_ends_with_the_same_files(tmp_path, sites):
    run = run_of(epochs=2)
    whole, parts = (RunFolder(tmp_path / name, run) for name in ("whole", "parts"))
    lines = []
    execute(whole, sites, on_epoch=lines.append)
    assert [step.epoch for step in lines] == [1, 2, 3, 4]
    assert [step.news.split()[0] for step in lines] == ["one", "one", "two", "two"]
    assert_stopping_changes_no_file(whole, parts, sites, 4)
    predictions = pd.read_csv(whole.path / "predictions.csv")
    groups = predictions.groupby("after", sort=False)["part"].unique()
    assert {after: list(parts) for after, parts in groups.items()} == {
        "one": ["one", "two", "one validation", "two validation"],
        "two": ["one", "two", "one validation", "two validation"],
    }
    auc = pd.read_csv(whole.path / "scores.csv").query('metric == "auc"')
    assert set(zip(auc["after"], auc["part"], strict=True)) == {
        (after, name) for after in ("one", "two") for name in ("one", "two")
    }


def test_the_first_site_is_learnt_as_if_it_were_alone(tmp_path, sites):
    alone, sequence = (RunFolder(tmp_path / n, run_of(epochs=1)) for n in ("a", "b"))
    execute(alone, sites[:1])
    execute(sequence, sites)
    one = pd.read_csv(alone.path / "predictions.csv")
    both = pd.read_csv(sequence.path / "predictions.csv")
    after_one = both[(both["after"] == "one") & (both["part"] == "one")]
    after_two = both[(both["after"] == "two") & (both["part"] == "one")]
    assert set(one["part"]) == {"test", "validation"}
    one = one[one["part"] == "test"]
    assert one["probability"].tolist() == after_one["probability"].tolist()
    assert one["probability"].tolist() != after_two["probability"].tolist()


# References


def carried_out(folder, sites, **keys):
    """What is predicted by a method of point estimates, after all its training."""
    run = RunFolder(folder, run_of(posterior="none", epochs=1, **keys))
    execute(run, sites)
    return pd.read_csv(run.path / "predictions.csv")


def test_a_method_carries_its_network_from_site_to_site(tmp_path, sites):
    """Its weights, and the averages of batch normalisation; one site has nothing to carry to."""

    def environment(folder, sites, **keys):
        carried_out(tmp_path / folder, sites, **keys)
        (path,) = (tmp_path / folder).rglob("environment.json")
        return json.loads(path.read_text())

    naive = environment("naive", sites, strategy="naive")
    run = run_of(posterior="none", epochs=1, strategy="naive")
    network = RunFolder(tmp_path / "naive", run).load("weights.pt")["states"][-1]["network"]
    kept = sum(t.numel() * t.element_size() for t in network.values())
    assert 4 * naive["parameters"] <= naive["carried_bytes"] <= kept
    ewc = environment("ewc", sites, strategy="ewc")
    assert ewc["carried_bytes"] >= naive["carried_bytes"] + 4 * naive["parameters"]
    assert environment("one", sites[:1], strategy="naive")["carried_bytes"] is None
    assert environment("joint", sites, strategy="joint")["carried_bytes"] is None


def test_joint_learns_all_sites_at_once_from_their_parts(tmp_path, sites):
    both = together(sites)
    assert len(both.data) == len(sites[0].data) + len(sites[1].data)
    for part in ("train", "validation", "test"):
        rows, parts = getattr(both.split, part), [getattr(s.split, part) for s in sites]
        assert len(rows) == sum(map(len, parts))
        images = torch.cat([s.data.images(r) for s, r in zip(sites, parts, strict=True)])
        # Back to front: rows are given in any order.
        assert torch.equal(both.data.images(rows[::-1].copy()), images.flip(0))
        classes = torch.cat([s.data.classes()[r] for s, r in zip(sites, parts, strict=True)])
        assert torch.equal(both.data.classes()[rows], classes)
    predictions = carried_out(tmp_path, sites, strategy="joint")
    assert set(predictions["after"]) == {"two"}
    assert set(predictions["part"]) == {"one", "two", "one validation", "two validation"}


def test_joint_on_one_site_is_training_on_it(tmp_path, sites):
    joint, naive = (
        carried_out(tmp_path, sites[:1], strategy=strategy) for strategy in ("joint", "naive")
    )
    assert joint.equals(naive)


def test_a_network_for_each_site_answers_for_it_whatever_the_others_are(tmp_path, sites):
    one, two = sites
    dark = dataclasses.replace(two, name="one", data=retinopathy_helpers.pixels(shift=-20))
    tables = [
        carried_out(tmp_path / str(k), pair, strategy="single_task").set_index(["after", "part"])
        for k, pair in enumerate(([one, two], [dark, two]))
    ]
    at = [table["probability"] for table in tables]
    assert at[0]["one", "one"].tolist() == at[0]["two", "one"].tolist()
    assert at[0]["two", "two"].tolist() != at[0]["one", "two"].tolist()
    assert at[0]["two", "two"].tolist() == at[1]["two", "two"].tolist()
    assert at[0]["one", "one"].tolist() != at[1]["one", "one"].tolist()


@pytest.mark.parametrize(("strategy", "epochs"), [("joint", 2), ("single_task", 4)])
def test_a_reference_that_is_stopped_anywhere_ends_with_the_same_files(
    tmp_path, sites, strategy, epochs
):
    run = run_of(strategy=strategy, posterior="none", epochs=2)
    whole, parts = (RunFolder(tmp_path / name, run) for name in ("whole", "parts"))
    lines = []
    execute(whole, sites, on_epoch=lines.append)
    assert [step.epoch for step in lines] == list(range(1, epochs + 1))
    assert {step.epochs for step in lines} == {epochs}
    assert_stopping_changes_no_file(whole, parts, sites, epochs)


# The report


def test_the_report_of_a_sequence_shows_what_is_left_of_each_site(tmp_path):
    sites = ("camera-a", "camera-b", "camera-c")
    for method, seed in (("joint", 0), ("radial-vcl", 0), ("radial-vcl", 1)):
        retinopathy_helpers.finished_run(tmp_path, method, seed, sites=sites)
    runs, _ = gather(tmp_path)
    counts = {"radial-vcl": 9_680, "joint": None}
    of_before = sections(runs, None)
    runs = [
        dataclasses.replace(
            run, environment={**run.environment, "carried_bytes": counts[run.method]}
        )
        for run in runs
    ]
    shown = sections(runs, None)
    of_runs = [pd.read_csv(io.StringIO(s[0].files["runs.csv"])) for s in (of_before, shown)]
    assert [*of_runs[1]] == [*of_runs[0], "carried_bytes"]
    assert of_runs[1].groupby("method")["carried_bytes"].max().to_dict()["radial-vcl"] == 9_680
    (part,) = (p for p in shown if p.title == "Sites in sequence")
    table = next(block for block in part.blocks if isinstance(block, Table))
    head = [column.heading for column in table.heads]
    rows = {row[0].text: dict(zip(head, row, strict=True)) for row in table.body}
    assert list(rows) == ["radial-vcl", "joint"]
    auc, lost = [], []
    for run in (run for run in runs if run.method == "radial-vcl"):
        scores = run.tables["scores"].query('metric == "auc" and referred == 0')
        of = scores[scores["uncertainty"] == "entropy"].set_index(["after", "part"])["value"]
        auc.append([of["camera-c", site] for site in sites])
        first = max(of["camera-a", "camera-a"], of["camera-b", "camera-a"])
        lost.append(first + of["camera-b", "camera-b"] - auc[-1][0] - auc[-1][1])
    shown = rows["radial-vcl"]
    assert shown["mean AUC (%) ↑"].sort == pytest.approx(np.mean(auc))
    assert shown["forgetting ↓"].sort == pytest.approx(np.mean(lost) / 2)
    for site, values in zip(sites, np.transpose(auc), strict=True):
        mean, error = mean_and_standard_error(values)
        assert shown[site].text == f"{mean:.1f} ± {error:.1f}"
    assert shown["seeds"].text == "2"
    assert [rows[method]["carried"].text for method in counts] == ["9.68 kB", "–"]
    assert rows["joint"]["forgetting ↓"].text == "–"
    assert " ± " not in rows["joint"]["camera-a"].text
    of_sequences = pd.read_csv(io.StringIO(part.files["sequences.csv"])).set_index("method")
    radial = of_sequences.loc["radial-vcl"]
    assert radial["mean_auc"].tolist() == pytest.approx([np.mean(of_run) for of_run in auc])
    assert radial["forgetting"].tolist() == pytest.approx([points / 2 for points in lost])
    assert np.isnan(of_sequences.loc["joint", "forgetting"])
    matrices = pd.read_csv(io.StringIO(part.files["matrices.csv"]))
    assert matrices.groupby("method").size().to_dict() == {"joint": 4, "radial-vcl": 12}
    pictures = {block.name: block for block in part.blocks if isinstance(block, Figure)}
    *panels, _ = pictures["heatmaps"].draw().axes
    assert [axes.get_xlabel() for axes in panels] == ["AUC on task"] * 2
    (curve,) = pictures["in-sequence"].draw().axes
    assert curve.get_ylabel() == "AUC (%)"


def test_validation_parts_of_sites_are_the_sites_of_its_table(tmp_path):
    sites = ("camera-a", "camera-b")
    retinopathy_helpers.finished_run(tmp_path, "radial-vcl", 0, sites=sites)
    (run,), _ = gather(tmp_path)
    scores = run.tables["scores"]
    of_validation = {"scores": scores.assign(part=scores["part"] + " validation")}
    on_validation = dataclasses.replace(run, tables=of_validation)
    tables = [over_tasks(scores_table([r]), "auc", "AUC") for r in (run, on_validation)]
    assert len(tables[0]) == 4
    pd.testing.assert_frame_equal(*(table.drop(columns="part") for table in tables))


# Parts


def with_sites(data, site):
    rows = [dataclasses.replace(row, site=site(row)) for row in data.photographs.rows]
    moved = dataclasses.replace(data.photographs, rows=tuple(rows))
    return dataclasses.replace(data, photographs=moved)


def test_sites_share_no_patient_and_the_first_one_normalises(monkeypatch):
    drawn = retinopathy_helpers.pixels(patients=60)
    data = with_sites(drawn, lambda row: "ab"[int(row.patient) % 3 == 0])
    monkeypatch.setattr("vcl_radial.tracks.retinopathy.prepare._load", lambda *_: data)
    sites = prepare(DataSettings(parts="site", validation=0.2))
    assert [site.name for site in sites] == ["a", "b"]
    assert [len(site.data) for site in sites] == [80, 40]
    patients = [set(site.data.photographs.patients.tolist()) for site in sites]
    assert not patients[0] & patients[1]
    first = sites[0].data.images(sites[0].split.train).double().mean((0, 2, 3)) / 255
    for site in sites:
        assert list(site.normalisation.mean) == pytest.approx(first.tolist())
    assert [name for name, _, _ in all_test_sets(sites)] == ["a", "b"]


def test_parts_that_cannot_be_cut_are_refused():
    data = retinopathy_helpers.pixels(patients=4)
    with refuses('parts = "site"', kind=DataError):
        parts_of(data, DataSettings(parts="site"))
    with refuses("patient", kind=DataError):
        parts_of(with_sites(data, lambda row: row.eye), DataSettings(parts="site"))


def test_committed_predictions_of_sites_are_those_after_the_last(tmp_path):
    sites = ("camera-a", "camera-b")
    retinopathy_helpers.finished_run(tmp_path, "radial-vcl", 0, sites=sites)
    runs, _ = gather(tmp_path)
    kept = pd.read_csv(io.StringIO(evidence(runs)["predictions.csv"]))
    assert set(kept["after"]) == {"camera-b"}
    assert set(kept["part"]) == set(sites)
