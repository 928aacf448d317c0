"""A kept model of photographs that learns one more site is the model of one run over all sites."""

import shutil

import pytest
import retinopathy_helpers
from failing import data_fails, fails, refuses
from retinopathy_helpers import Stop, recipe

import vcl_radial as vr
from vcl_radial.cli import main
from vcl_radial.errors import UserError
from vcl_radial.models import format as files
from vcl_radial.reporting.gather import gather
from vcl_radial.runs import execute as run_machine
from vcl_radial.runs import kept
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.runs.updating import planned
from vcl_radial.tracks.retinopathy.settings import DataSettings, Run
from vcl_radial.tracks.retinopathy.track import Retinopathy

HOSPITALS = {"aptos": "APTOS", "idrid": "IDRiD", "odir": "ODIR"}
"""Data sets with their folders; here they hold drawn photographs, each brighter than the last."""

QUICK = ("radial-vcl", "ewc", "replay", "single-task")
TINY = recipe(epochs=2, select="last", channels=2).model_dump(exclude_unset=True)


@pytest.fixture(scope="session")
def hospitals(tmp_path_factory):
    """A data folder with a folder of photographs for each hospital."""
    root = tmp_path_factory.mktemp("hospitals")
    for number, name in enumerate(HOSPITALS.values()):
        photographs = retinopathy_helpers.table(16, 20 * number, name)
        folder = root / "retinopathy" / name
        (folder / "images").mkdir(parents=True)
        lines = ["image,level,patient,eye"]
        for row in photographs.rows:
            image = f"{name}_{row.name}"
            photographs.reader.read(row, 16).save(folder / "images" / f"{image}.png")
            lines.append(f"{image},{row.grade},{name}{row.patient},{row.eye}")
        (folder / "labels.csv").write_text("\n".join([*lines, ""]))
    return root


def run_on(*names, method="radial-vcl", **keys):
    """The run of a method on hospitals in sequence."""
    (made,) = plan("retinopathy-idrid", [method], [0], {"epochs": 2})
    tiny = {key: value for key, value in TINY.items() if key != "posterior"}
    tables = made.recipe.model_dump() | tiny | keys
    if "coreset_size" in tables["options"]:
        tables["options"] |= {"coreset_size": 4}
    data = DataSettings(
        dataset=names[0],
        then=[*names[1:]],
        **{"size": 16, "crop": False, "normalise": "none", "validation": 0.2, "test": 0.3},
    )
    return Run(benchmark="hospitals", method=method, seed=0, data=data, recipe=tables)


def carried_out(run, out, hospitals, stop_after=None):
    """The folder of a run, which may be stopped after an epoch."""

    def report(step):
        if stop_after is not None and step.news and step.epoch == stop_after:
            raise Stop

    run_machine.execute(Retinopathy(), run, RunContext(out, hospitals), report)
    return RunFolder(out, run).path


def updated(folder, name, out, hospitals, **settings):
    """The folder of an update with a hospital."""
    data = hospitals / "retinopathy" / HOSPITALS[name]
    vr.update(folder, data, name=name, out=out, device="cpu", data_dir=hospitals, **settings)
    return max(out.glob("*/*/seed-*"), key=lambda path: len(path.parts[-3]))


def assert_equal(folder, other):
    """Two folders hold the same model, predictions and scores."""
    for key in ("checksum", "heads", "tasks", "input"):
        assert files.read_card(folder)[key] == files.read_card(other)[key], key
    for name in ("predictions", "scores", "calibration"):
        assert (folder / f"{name}.csv").read_bytes() == (other / f"{name}.csv").read_bytes(), name


def check_truth(method, out, hospitals, *names, **keys):
    whole, first = (run_on(*sites, method=method, **keys) for sites in (names, names[:-1]))
    parent = carried_out(first, out / "first", hospitals)
    folder = updated(parent, names[-1], out / "updates", hospitals)
    assert_equal(carried_out(whole, out / "whole", hospitals), folder)


@pytest.mark.parametrize("method", QUICK)
def test_two_hospitals_and_an_update_are_three_in_one_run(method, tmp_path, hospitals):
    check_truth(method, tmp_path, hospitals, "aptos", "idrid", "odir")


def methods_of_photographs():
    """Every method that learns site by site; the kernel of the tangent takes minutes."""
    left_out = {*QUICK, "joint", "bayes-linear-tangent"}
    return sorted({*vr.list_methods(), *vr.list_methods("retinopathy")} - left_out)


@pytest.mark.slow
@pytest.mark.parametrize("method", methods_of_photographs())
def test_so_it_is_for_every_method_that_serves_photographs(method, tmp_path, hospitals):
    try:
        run = run_on("aptos", method=method)
        run.check()
        Retinopathy().check_data([run], hospitals)
    except UserError as error:
        pytest.skip(str(error))
    check_truth(method, tmp_path, hospitals, "aptos", "idrid", epochs=1)


def test_one_hospital_and_two_updates_are_three_in_one_run(tmp_path, hospitals):
    """The parts of a run on one site, `test` and `validation`, become those of a sequence."""
    folder = carried_out(run_on("aptos"), tmp_path / "first", hospitals)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("idrid", "odir"):
        folder = updated(folder, name, tmp_path / "updates", hospitals)
    whole = carried_out(run_on("aptos", "idrid", "odir"), tmp_path / "whole", hospitals)
    (first,) = (tmp_path / "first").glob("*/*/seed-*")
    assert {path.name: path.read_bytes() for path in first.iterdir()} == before
    card, of_whole = files.read_card(folder), files.read_card(whole)
    assert card["checksum"] == of_whole["checksum"]
    predicted, by_whole = (
        set((path / "predictions.csv").read_text().splitlines()[1:]) for path in (folder, whole)
    )
    assert predicted == by_whole
    assert main(["list", str(tmp_path / "updates")]) == 0
    (run,) = [run for run in gather(tmp_path / "updates")[0] if run.path == folder]
    assert run.environment["sites"] == ["aptos", "idrid", "odir"]
    titles = [section.title for section in Retinopathy().sections([run], None)]
    assert "Sites in sequence" in titles


def test_an_interrupted_update_ends_with_the_same_bytes(tmp_path, hospitals):
    parent = carried_out(run_on("aptos"), tmp_path / "first", hospitals)
    data = hospitals / "retinopathy/IDRiD"
    run = planned(Retinopathy(), kept.load(parent), parent, data, "idrid", {})
    with pytest.raises(Stop):
        carried_out(run, tmp_path / "a", hospitals, stop_after=1)
    assert not RunFolder(tmp_path / "a", run).finished()
    assert_equal(*(carried_out(run, tmp_path / out, hospitals) for out in "ab"))


def test_hospitals_whose_photographs_are_gone_keep_their_scores(tmp_path, hospitals, capsys):
    here = shutil.copytree(hospitals, tmp_path / "here")
    parent = carried_out(run_on("aptos", "idrid"), tmp_path / "first", here)
    rows = (parent / "predictions.csv").read_text().splitlines()
    shutil.rmtree(here / "retinopathy/APTOS")
    folder = updated(parent, "odir", tmp_path / "updates", here)
    assert "aptos, idrid" in capsys.readouterr().err
    lines = (folder / "predictions.csv").read_text().splitlines()
    assert set(rows) < set(lines)
    column = rows[0].split(",").index("part"), rows[0].split(",").index("after")
    added = {tuple(line.split(",")[k] for k in column) for line in set(lines) - set(rows)}
    assert {part for part, _ in added} == {"odir", "odir validation"}
    assert {after for _, after in added} == {"aptos", "idrid", "odir"}


def test_what_is_no_further_site_is_one_line(tmp_path, hospitals):
    parent = carried_out(run_on("aptos"), tmp_path / "first", hospitals)
    new = shutil.copytree(hospitals / "retinopathy/IDRiD", tmp_path / "new")
    table = new / "labels.csv"
    text = table.read_text()
    out = {"out": tmp_path / "out", "device": "cpu"}
    table.write_text("\n".join([*text.splitlines()[:2], ""]))
    with data_fails(new):
        vr.update(parent, new, **out)
    table.unlink()
    with data_fails(table):
        vr.update(parent, new, **out)
    table.write_text(text)
    with fails("name", "--name"):
        vr.update(parent, new, name="aptos", **out)
    with refuses("hidden"):
        vr.update(parent, new, settings={"hidden": [3]}, **out)
    joint = carried_out(run_on("aptos", method="joint"), tmp_path / "first", hospitals)
    with fails(joint, "joint"):
        vr.update(joint, new, **out)
    assert not (tmp_path / "out").exists()
