"""A track of sixty lines: epoch by epoch it learns the mean of numbers that the seed draws."""

import math
from dataclasses import replace
from typing import ClassVar

import pandas as pd
import torch

from vcl_radial.config.ranges import Count, Positive
from vcl_radial.errors import Diverged
from vcl_radial.reporting.blocks import Section, Table
from vcl_radial.runs.settings import Settings
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import Objective, Track
from vcl_radial.runs.training import Step


class Data(Settings):
    mean: float = 3.0


class Recipe(Settings):
    epochs: Count = 4
    learning_rate: Positive = 0.5


class Run(RunSpec):
    TRACK: ClassVar[str] = "toy_track:Toy"
    FILES: ClassVar = ("scores.csv",)
    data: Data = Data()
    recipe: Recipe


class Learning:
    def __init__(self, run):
        self.run, self.guess, self.scores = run, 0.0, []

    def position(self):
        done, epochs = len(self.scores), self.run.recipe.epochs
        return Step(done, f"epoch {done + 1} of {epochs}", epoch=done, epochs=epochs, at=done)

    def state_dict(self):
        return {"guess": self.guess, "scores": self.scores}

    def load_state_dict(self, state):
        self.guess, self.scores = state["guess"], state["scores"]

    def steps(self):
        while (done := len(self.scores)) < self.run.recipe.epochs:
            noise = torch.Generator().manual_seed(1000 * self.run.seed + done)
            target = self.run.data.mean + float(torch.randn((), generator=noise))
            self.guess += self.run.recipe.learning_rate * (target - self.guess)
            if not math.isfinite(self.guess) or abs(self.guess) > 1e6:
                raise Diverged(f"the guess is {self.guess}: lower learning_rate")
            self.scores.append(100 / (1 + abs(self.guess - self.run.data.mean)))
            score, news = self.scores[-1], f"epoch {done + 1} is done"
            here = replace(self.position(), message=news, news=news, score=score)
            yield replace(here, scalars={"score": score})

    def files(self):
        return {"scores.csv": pd.DataFrame({"score": self.scores}).to_csv(index=False)}

    def kept(self):
        return {}

    def facts(self):
        return {"seconds": 0.0}


class Toy(Track[Run]):
    spec = Run
    methods = ("guess.toml",)
    step = "epoch"
    objectives: ClassVar = {"closeness": Objective("maximize", "closeness (%)")}
    worker_modules = ("vcl_radial.runs.attempt", "toy_track")

    def open(self, run, context, report):
        return Learning(run)

    def scores_so_far(self, folder):
        state = folder.load_checkpoint() or {"scores": []}
        scores = self.read(folder.path, {})["scores"]["score"] if folder.finished() else None
        return dict(enumerate(state["scores"] if scores is None else scores, start=1))

    def score(self, folder, objective):
        return float(self.read(folder.path, {})["scores"]["score"].iloc[-1])

    def read(self, path, environment):
        return {"scores": pd.read_csv(path / "scores.csv")}

    def sections(self, runs, data_dir):
        last = [run.tables["scores"]["score"].iloc[-1] for run in runs]
        rows = [(r.method, str(r.spec.seed), f"{s:.2f}") for r, s in zip(runs, last, strict=True)]
        return [Section("Scores", [Table(["method", "seed", "closeness (%)"], rows)])]
