"""A kept model of photographs learns one more folder of photographs: its site, and its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vcl_radial.data.decoding import ReportProgress, print_progress
from vcl_radial.data.fundus import Normalisation, Photographs, Split, load_folder, load_pixels
from vcl_radial.errors import DataError, UserError, bad_value
from vcl_radial.files import reading
from vcl_radial.reporting.stored import stored_table
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.peers import ALONE, Peers
from vcl_radial.runs.spec import Update
from vcl_radial.runs.updating import parent_of
from vcl_radial.tracks.retinopathy.checksums import checksum, checksum_of
from vcl_radial.tracks.retinopathy.execute import EpochTraining, Known
from vcl_radial.tracks.retinopathy.prepare import (
    Prepared,
    counts,
    prepare,
    shared_patients,
    split_of,
)
from vcl_radial.tracks.retinopathy.scoring import PREDICTIONS
from vcl_radial.tracks.retinopathy.settings import VALIDATION, DataSettings, Run
from vcl_radial.training.trainer import Trainer


def quiet(line: str) -> None:
    """Report nothing."""


class UpdatedTraining(EpochTraining):
    """A training whose last site is the folder of photographs that a kept model learns.

    The predictions of the parent stay those of the earlier sites. The networks after them predict
    the new site too, and the new network all sites whose photographs are at hand.

    Args:
        run: the run.
        data_dir: folder of the benchmark's photographs.
        device: the device of network and pixels.
        peers: processes that share every batch.
        report: takes a line on photographs that are not at hand, and on the progress of decoding.

    Raises:
        UserError: the parent is not the model that the run continues.
        DataError: the new photographs are damaged, have changed, or do not fit.
    """

    def __init__(
        self,
        run: Run,
        data_dir: Path | None,
        device: str = "cpu",
        peers: Peers = ALONE,
        report: ReportProgress = quiet,
    ) -> None:
        card, state = parent_of(run)
        assert run.updates
        folder, names = Path(run.updates[-1].folder), [task["name"] for task in card["tasks"]]
        self._before = reading.read_json(folder / "environment.json")
        sites = _sites(run, card, data_dir, report)
        super().__init__(run, _with_all_parts(sites, folder, names), device, peers, len(names))
        self.known = _predictions_of(folder, names)
        states = [*_states(folder, card)[:-1], state]
        between = Trainer.state_between_tasks(states, len(names))
        self.trainer.load_state_dict(between | {"processes": peers.world})

    def facts(self) -> dict[str, Any]:
        """The facts of the run, with photographs and notices of the whole chain."""
        new, before = self.sites[-1], self._before
        numbers = {
            part: before["photographs"][part] + len(getattr(new.split, part))
            for part in ("train", "validation", "test")
        }
        notices = [*dict.fromkeys([*before["notices"], *new.notices])]
        return super().facts() | {"photographs": numbers, "notices": notices}


def check_update(run: Run, data_dir: Path | None) -> None:
    """Open the run of an update, and report its photographs and what is not scored again.

    Raises:
        UserError, DataError: see `UpdatedTraining`.
    """
    new = UpdatedTraining(run, data_dir, report=print_progress).sites[-1]
    print(counts(new.name, new.split, "test on"), flush=True)


def new_task(run: Run, path: Path) -> str:
    """The checksum of a folder of photographs: their names, labels and sizes.

    Args:
        run: the run of the model.
        path: the folder; see `vcl_radial.data.fundus.load_folder`.

    Raises:
        DataError: the folder is damaged, or lacks a class in a part.
    """
    photographs = load_folder(path, on_fault=run.data.on_fault, report=quiet)
    split_of(str(path), photographs, _split_settings(run, photographs))
    return checksum_of([(path.name, photographs)])


def _sites(
    run: Run, card: Mapping[str, Any], data_dir: Path | None, report: ReportProgress
) -> list[Prepared]:
    """All sites; those whose photographs are not at hand are empty."""
    assert run.updates
    *earlier, last = run.updates
    if last.task in run.data.shifted:
        raise bad_value("name", last.task, "is a data set of data.shifted: give another --name")
    normalisation = Normalisation(*map(tuple, card["input"]["scaling"]))
    new = _new_site(run, last, normalisation, report)
    names = [task["name"] for task in card["tasks"]][: len(card["tasks"]) - len(earlier)]
    try:
        if run.data.checksum not in (None, checksum(run.needed, data_dir)):
            raise DataError("have changed since the model was trained on them", at=run.data.dataset)
        sites = prepare(run.needed, data_dir, report=quiet)
    except UserError as error:
        report(f"{', '.join(names)}: not scored again, as the photographs are not here: {error}")
        sites = [_empty(name, new) for name in names]
    for update in earlier:
        try:
            sites.append(_new_site(run, update, normalisation, quiet))
        except UserError as error:
            report(f"{update.task} is not scored again, as its photographs are not here: {error}")
            sites.append(_empty(update.task, new))
    # A further test set of the same folder now has patients that were trained on.
    origin = new.data.photographs.reader.origin
    shifted = {
        name: data
        for name, data in sites[0].shifted.items()
        if data.photographs.reader.origin != origin
    }
    return [replace(sites[0], shifted=shifted), *sites[1:], new]


def _new_site(
    run: Run, update: Update, normalisation: Normalisation, report: ReportProgress
) -> Prepared:
    """The photographs of an update, ready for training.

    Raises:
        DataError: they are damaged or have changed.
    """
    path, data = Path(update.data), run.needed
    photographs = load_folder(path, on_fault=data.on_fault, report=report)
    if checksum_of([(path.name, photographs)]) != update.checksum:
        raise DataError(f"has changed since the task {update.task!r} was learnt", at=path)
    pixels = load_pixels(
        photographs,
        data.size,
        crop=data.crop,
        normalise=data.normalise,
        on_fault=data.on_fault,
        report=report,
    )
    settings = _split_settings(run, photographs)
    split = split_of(str(path), pixels.photographs, settings)
    notices = [photographs.notice, shared_patients(update.task, pixels, settings)]
    return Prepared(update.task, pixels, split, normalisation, [*filter(None, notices)])


def _split_settings(run: Run, photographs: Photographs) -> DataSettings:
    """The split of the run; by patient if it is a published one, which the photographs lack."""
    if run.data.split == "random" or all(row.part for row in photographs.rows):
        return run.needed
    return run.needed.model_copy(update={"split": "random"})


def _empty(name: str, like: Prepared) -> Prepared:
    """A site whose photographs are not at hand."""
    nothing = np.arange(0)
    data = like.data.select(nothing)
    return replace(like, name=name, data=data, split=Split(nothing, nothing, nothing))


def _with_all_parts(
    sites: Sequence[Prepared], folder: Path, names: Sequence[str]
) -> list[Prepared]:
    """The sites, with every further test set of the parent; those not at hand are empty."""
    known = [part for _, part in _predictions_of(folder, names)]
    own = {site.name for site in sites} | {f"{site.name} {VALIDATION}" for site in sites}
    nothing = sites[-1].data.select(np.arange(0))
    shifted = {part: nothing for part in known if part not in own} | dict(sites[0].shifted)
    return [replace(sites[0], shifted=shifted), *sites[1:]]


def _predictions_of(folder: Path, names: Sequence[str]) -> Known:
    """The predictions of a finished run by site and part, as parts of a sequence are named."""
    # As text, because pandas may round the last digit of a number.
    texts = dict.fromkeys(PREDICTIONS, str)
    table = stored_table(folder / "predictions.csv", texts, texts, keep_default_na=False)
    for name in ("probability", "entropy", "mutual_information", "log_odds", "sampling"):
        table[name] = [float(text or "nan") for text in table[name]]
    table = table.astype({"label": int, "level": int})
    if len(names) == 1:
        parts = {"test": names[0], VALIDATION: f"{names[0]} {VALIDATION}"}
        table["part"] = table["part"].replace(parts)
    return {
        (str(after), str(part)): rows
        for (after, part), rows in table.groupby(["after", "part"], sort=False)
    }


def _states(folder: Path, card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The states after every site of the parent.

    Raises:
        UserError: they cannot be read.
    """
    tables = {key: value for key, value in card["spec"].items() if key != "track"}
    parent = RunFolder(folder, Run.model_validate(tables))
    parent.path = folder  # it may have been moved
    stored = parent.load("weights.pt")
    if stored is None or len(stored["states"]) != len(card["tasks"]):
        raise UserError("lacks the states after the sites: run it again", at=folder)
    states: list[dict[str, Any]] = stored["states"]
    return states
