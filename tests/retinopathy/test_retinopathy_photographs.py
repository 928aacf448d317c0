"""Photographs of a run: known by their content, split, and kept apart."""

import dataclasses

import pytest
import retinopathy_helpers
from failing import refuses
from PIL import Image

from vcl_radial.errors import DataError
from vcl_radial.tracks.retinopathy.prepare import all_test_sets, prepare
from vcl_radial.tracks.retinopathy.settings import DataSettings, Run
from vcl_radial.tracks.retinopathy.track import Retinopathy


def run_of(**keys):
    return Run(benchmark="b", method="m", seed=0, recipe=retinopathy_helpers.recipe(), **keys)


def test_runs_on_other_photographs_or_labels_are_others(tmp_path):
    folders = [tmp_path / name / "eyes" for name in ("first", "moved", "graded anew", "other")]
    for folder in folders:
        (folder / "images").mkdir(parents=True)
        rows = [
            f"{patient}_{eye},{patient % 3}" for patient in range(9) for eye in ("left", "right")
        ]
        (folder / "labels.csv").write_text("\n".join(["image,level", *rows, ""]))
        for row in rows:
            (folder / "images" / f"{row.split(',')[0]}.jpg").write_bytes(b"1234")
    text = (folders[2] / "labels.csv").read_text()
    (folders[2] / "labels.csv").write_text(text.replace("8_left,2", "8_left,3"))
    (folders[3] / "images" / "4_left.jpg").write_bytes(b"12345")
    run = run_of(data=DataSettings(dataset="folder"))
    first, moved, graded, other = (run.on_data(folder).digest() for folder in folders)
    assert first == moved
    assert len({run.digest(), first, graded, other}) == 4
    drawn = run_of(data=DataSettings())
    assert drawn.on_data(None) == drawn


def test_a_part_without_both_classes_is_refused(prepared, monkeypatch):
    healthy = prepared.data.select(prepared.data.photographs.referable == 0)
    monkeypatch.setattr("vcl_radial.tracks.retinopathy.prepare._load", lambda *_: healthy)
    with refuses("synthetic", "train part", kind=DataError):
        prepare(DataSettings())


def test_test_sets_are_the_test_part_and_all_of_the_shifted_ones():
    prepared = retinopathy_helpers.prepared(shifted=True)
    (test, data, rows), (other, shifted, all_rows) = all_test_sets([prepared])
    assert (test, other) == ("test", "idrid")
    assert rows.tolist() == prepared.split.test.tolist()
    assert all_rows.tolist() == list(range(16))
    # Normalised by what is trained on, not by what is tested on.
    mean = data.images(prepared.split.train).double().mean((0, 2, 3)) / 255
    assert list(prepared.normalisation.mean) == pytest.approx(mean.tolist())
    assert shifted.images(all_rows).double().mean() / 255 > mean.max() + 0.1


def test_no_eye_of_a_patient_who_is_trained_on_is_out_of_distribution(tmp_path):
    """Twenty patients have another disease in one eye, and ten in both."""
    lines = ["image,level,patient"]
    for k in range(40):
        for eye in ("left", "right"):
            level = -1 if k >= 30 or (k < 20 and eye == "left") else 3 * (k % 2)
            lines.append(f"{k}_{eye},{level},{k}")
            Image.new("RGB", (9, 9), (k, 90, 90)).save(tmp_path / f"{k}_{eye}.png")
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    settings = DataSettings(
        dataset="folder", shifted=["folder-other"], size=16, validation=0.2, test=0.3
    )
    (site,) = prepare(settings, tmp_path)
    assert len(site.data) == 40
    patients, other = site.data.photographs.patients, site.shifted["folder-other"].photographs
    trained = {*patients[site.split.train].tolist(), *patients[site.split.validation].tolist()}
    kept = {str(k) for k in (*range(20), *range(30, 40))} - trained
    assert trained & {str(k) for k in range(20)}
    assert set(other.patients.tolist()) == kept
    assert set(other.referable.tolist()) == {-1}


def test_a_seed_has_a_split_of_its_own_which_all_methods_share(monkeypatch):
    data = retinopathy_helpers.pixels(patients=60)
    monkeypatch.setattr("vcl_radial.tracks.retinopathy.prepare._load", lambda *_: data)

    def tested(method, seed, **keys):
        run = run_of(data=DataSettings(validation=0.2, **keys))
        run = run.model_copy(update={"method": method, "seed": seed})
        (site,) = prepare(run.needed)
        return set(site.data.photographs.patients[site.split.test].tolist())

    seeds = [tested("a", seed) for seed in range(3)]
    assert [tested("b", seed) for seed in range(3)] == seeds
    assert len({tuple(sorted(patients)) for patients in seeds}) == 3
    assert tested("a", 0, split_seed=2) == tested("b", 1, split_seed=2) == seeds[2]


def test_photographs_are_decoded_once_and_counted_once_for_all_seeds(monkeypatch, capsys):
    loads = []

    def load(name, *_):
        loads.append(name)
        return retinopathy_helpers.pixels(patients=60)

    monkeypatch.setattr("vcl_radial.tracks.retinopathy.prepare._load", load)
    run = run_of(data=DataSettings(validation=0.2))
    runs = [run.model_copy(update={"seed": seed}) for seed in range(4)]
    Retinopathy().check_data(runs, None)
    assert loads == ["synthetic"]
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("synthetic: ")
    assert sum(int(word) for word in line.split() if word.isdigit()) == 120


def test_that_patients_may_be_in_two_parts_is_said_with_the_results(monkeypatch):
    data = retinopathy_helpers.pixels(patients=60)
    unknown = dataclasses.replace(data.photographs, patients_known=False)
    data = dataclasses.replace(data, photographs=unknown)
    monkeypatch.setattr("vcl_radial.tracks.retinopathy.prepare._load", lambda *_: data)
    (site,) = prepare(DataSettings(validation=0.2))
    assert "a patient may be in two parts" in site.notices[-1]
    rows = [
        dataclasses.replace(row, part="test" if k < 40 else "train")
        for k, row in enumerate(unknown.rows)
    ]
    published = dataclasses.replace(unknown, rows=tuple(rows))
    data = dataclasses.replace(data, photographs=published)
    for share, notice in ((0.2, "a patient may be in both"), (0.0, published.notice)):
        (site,) = prepare(DataSettings(split="published", validation=share))
        assert notice in site.notices[-1]
