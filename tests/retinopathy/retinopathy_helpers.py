"""Photographs in memory whose brightness tells their class, and made-up runs, for tests."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from vcl_radial.data.fundus import (
    Normalisation,
    Photograph,
    Photographs,
    SyntheticSettings,
    load_pixels,
    split_by_patient,
    synthetic_photographs,
)
from vcl_radial.runs import execute as run_machine
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.peers import ALONE
from vcl_radial.tracks.retinopathy.execute import EpochTraining, history_line
from vcl_radial.tracks.retinopathy.prepare import Prepared
from vcl_radial.tracks.retinopathy.scoring import calibration_table, prediction_table, score_table
from vcl_radial.tracks.retinopathy.settings import DataSettings, Recipe, Run
from vcl_radial.tracks.retinopathy.track import Retinopathy
from vcl_radial.tracks.retinopathy.training import Sites, trainer_of


class Drawn:
    """Noise around a brightness for each row."""

    origin = "brightness"

    def __init__(self, bright):
        self.bright = bright

    def read(self, photograph, size):
        rng = np.random.default_rng([int(photograph.patient), photograph.eye == "left"])
        noise = rng.normal(self.bright[photograph.name], 12, (16, 16, 3))
        return Image.fromarray(noise.clip(30, 255).astype(np.uint8))

    def version(self, photograph):
        return str(self.bright[photograph.name])


def table(patients=40, shift=0, name="drawn"):
    """Healthy ones are dark and referable ones bright; every fifth one has an artefact."""
    rows, bright = [], {}
    for k in range(patients):
        for eye in ("left", "right"):
            image, grade = f"{k:03}_{eye}", 3 * (k % 2)
            bright[image] = (150 if grade else 90) + shift
            artefact = "dust" if k % 5 == 0 else ""
            rows.append(Photograph(image, f"{k:03}", eye, grade, "here", artefact=artefact))
    return Photographs(name, tuple(rows), Drawn(bright), notice="noise, drawn by a test")


@cache
def pixels(**keys):
    """As they are drawn: the local normalisation would take their brightness away."""
    return load_pixels(
        table(**keys), 16, crop=False, normalise="none", jobs=1, report=lambda line: None
    )


@cache
def prepared(patients=20, shifted=False):
    data = pixels(patients=patients)
    split = split_by_patient(data.photographs, validation=0.2, test=0.3)
    others = {"idrid": pixels(patients=8, shift=40, name="shifted")} if shifted else {}
    notices = [data.photographs.notice]
    return Prepared("drawn", data, split, Normalisation.fit(data, split.train), notices, others)


@cache
def two_sites():
    """A second site whose photographs are brighter."""
    first = prepared()
    second = pixels(patients=20, shift=60, name="bright")
    split = split_by_patient(second.photographs, validation=0.2, test=0.3)
    return [replace(first, name="one"), replace(first, name="two", data=second, split=split)]


def recipe(**keys):
    """A tiny network that learns fast, as in the paper but for its size."""
    start = {"network": "vgg", "channels": 2, "targets": "referable", "schedule": "constant"}
    start |= {"rotation": 180.0, "select": "best"}
    start |= {"epochs": 3, "batch_size": 8, "learning_rate": 3e-3}
    return Recipe(**{**start, "eval_samples": 4, "validation_samples": 2, **keys})


def finished_run(
    out, method, seed, *, sites=("synthetic",), skill=1.0, patients=40, elsewhere=False, **keys
):
    """A finished run whose predictions are made up: the larger `skill`, the better.

    With `elsewhere` it is of APTOS or IDRiD, and was tested on the other as well, and on
    photographs without a grade.
    """
    posterior = {"radial-vcl": "radial", "gaussian-vcl": "gaussian"}.get(method, "none")
    benchmark = "retinopathy-synthetic" + ("" if len(sites) == 1 else "-cameras")
    parts = ["test"] if len(sites) == 1 else sites
    if elsewhere:
        keys["shifted"] = [*({"aptos", "idrid"} - {keys["dataset"]}), "odir-other"]
        parts = ["test", *keys["shifted"]]
    data = DataSettings(patients=patients, **keys)
    made = recipe(posterior=posterior)
    run = Run(benchmark=benchmark, method=method, seed=seed, data=data, recipe=made)
    photographs = synthetic_photographs(SyntheticSettings(patients=patients))
    rng = np.random.default_rng([seed, *method.encode()])
    draws = 1 if posterior == "none" else 4
    tables = []
    for after, site in list(enumerate(sites))[-1 if method == "joint" else 0 :]:
        for number, name in enumerate(parts):
            better = skill * (1.5 if number <= after else 0.5)
            logits = better * (2 * photographs.referable - 1) + rng.normal(0, 1, len(photographs))
            noise = rng.normal(0, 1, (draws, len(photographs)))
            drawn = torch.from_numpy(logits + 1.5 * noise / (0.5 + abs(logits)))
            log_draws = torch.stack([-drawn, drawn], -1).log_softmax(-1)
            shown = photographs
            if name == "odir-other":
                ungraded = tuple(replace(row, grade=-1) for row in photographs.rows)
                shown = replace(photographs, rows=ungraded)
            tables.append(prediction_table(site, name, shown, log_draws))
    predictions = pd.concat(tables, ignore_index=True)
    folder = RunFolder(out, run)
    folder.start()
    folder.save("weights.pt", {"states": []})
    facts = {
        "device": "cpu",
        "processor": "a processor",
        "threads": 1,
        "packages": {"torch": "2"},
        "parameters": 1000,
        "seconds": 1.0,
        "seconds_per_epoch": 3.0,
        "photographs": {"train": 10, "test": len(photographs)},
        "notices": [photographs.notice],
        "sites": list(sites),
    }
    files = {
        "predictions": predictions,
        "scores": score_table(predictions),
        "calibration": calibration_table(predictions),
        "history": pd.DataFrame(),
    }
    texts = {f"{name}.csv": frame.to_csv(index=False) for name, frame in files.items()}
    folder.finish({**texts, "environment.json": json.dumps(facts)})
    return folder


class _OnSites(Retinopathy):
    """The track with photographs of a test's own."""

    def __init__(self, sites):
        self.sites = sites

    def open(self, run, context, report):
        return EpochTraining(run, self.sites, context.device, context.peers)


def execute(folder, sites, on_epoch=lambda step: None, peers=ALONE):
    """Carry a run out; `on_epoch` is called with the step of each of its epochs."""
    threads = torch.get_num_threads()

    def report(step):
        if step.news is not None:
            on_epoch(step)

    out = folder.path.parents[2]
    # What it starts with is no epoch.
    steps = iter([True])
    run_machine.execute(
        _OnSites(sites),
        folder.run,
        RunContext(out, threads=threads, peers=peers),
        lambda step: None if next(steps, False) else report(step),
    )


def run_of(seed=0, **keys):
    """A run of such a recipe, on any data."""
    return Run(benchmark="b", method="m", seed=seed, data=DataSettings(), recipe=recipe(**keys))


class Stop(BaseException):
    """Ends a run between two epochs."""


def assert_stopping_changes_no_file(whole, parts, sites, epochs):
    """A run that is stopped after each of its epochs ends with the files of one that was not."""

    def stop(_):
        raise Stop

    for _ in range(epochs):
        with pytest.raises(Stop):
            execute(parts, sites, on_epoch=stop)
        torch.rand(3)
    execute(parts, sites, on_epoch=stop)
    for name in ("predictions", "scores", "calibration"):
        assert (parts.path / f"{name}.csv").read_text() == (whole.path / f"{name}.csv").read_text()


class Training:
    """Training on one site by the track's trainer, epoch by epoch.

    `number` is the site's place in a sequence, and `start` the state that the method carries to it.
    """

    def __init__(self, recipe, site, seed, *, number=0, start=None, peers=ALONE):
        self.source = Sites(recipe, [site] * (number + 1), seed, peers=peers)
        self.trainer = trainer_of(recipe, site.data.size, seed, peers=peers)
        if start is not None:
            state = {**self.trainer.state_dict(), "states": [start], "done": number}
            self.trainer.load_state_dict(state)
        self.number = number
        self.method, self.network = self.trainer.method, self.trainer.method.network
        self.epoch_steps = self.source.tasks()[0].epoch_steps
        self._steps = self.trainer.steps(self.source)

    def run_epoch(self, on_step=None):
        self.trainer.on_step = on_step
        return history_line(next(self._steps))

    def run(self):
        while not self.finished:
            self.run_epoch()
        return self

    @property
    def finished(self):
        return self.trainer.done > self.number

    @property
    def history(self):
        return list(map(history_line, self.trainer.history))

    def carried(self):
        self.trainer.end_task()
        return self.trainer.states[-1]
