"""What runs would cost, from one step on noise; nothing is trained.

The step has the batch of the run, but no more pixels than a photograph of 512 pixels; time and
memory are in proportion to the photographs. A prediction under one draw of the weights has a
forward and no backward pass, and counts as a third of a step with one draw. Memory is that of the
numbers that the backward pass needs, and of each trained number with its gradient and two moments.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.data.decoding import processors
from vcl_radial.data.fundus import load_photographs
from vcl_radial.data.fundus.data import decode_one
from vcl_radial.runs.progress import duration
from vcl_radial.runs.track import Cost
from vcl_radial.system.processor import clock
from vcl_radial.tracks.methods import draws
from vcl_radial.tracks.retinopathy.parts import parts_of
from vcl_radial.tracks.retinopathy.prepare import split_of, synthetic_settings
from vcl_radial.tracks.retinopathy.settings import DataSettings, Recipe, Run
from vcl_radial.tracks.retinopathy.training import trainer_of

_DECODED = 3
"""Number of photographs that are decoded to measure their time."""

_PIXELS = 512**2
"""Most pixels of the photographs of a measured step."""


class _Counts(NamedTuple):
    """Photographs in the parts of a run: to train on by site, to choose by, to test on."""

    train: Sequence[int]
    validation: int
    test: int
    notes: Sequence[str]


def costs(runs: Sequence[Run], data_dir: Path | None, device: str) -> Iterator[Cost]:
    """Photographs, steps, memory and time of each run.

    Raises:
        UserError: the data cannot be read, or a part would be empty.
    """
    counts: dict[str, _Counts] = {}
    for run in runs:
        data, recipe = run.needed, run.recipe
        if (key := data.model_dump_json()) not in counts:
            counts[key] = _counts(data, data_dir)
        train, validation, test, notes = counts[key]
        numbers, kept, seconds, samples = _step(recipe, data.size, device)
        steps = recipe.epochs * sum(rows // recipe.batch_size for rows in train)
        chosen_by = recipe.epochs * validation * min(samples, recipe.validation_samples)
        forwards = (chosen_by + test * samples) / (3 * recipe.train_samples)
        yield Cost(
            f"{numbers:,} trained numbers; {steps:,} steps of {recipe.batch_size}",
            seconds=seconds * (steps * recipe.batch_size + forwards),
            memory=16 * numbers + kept * recipe.batch_size,
            disk=4 * numbers,
            notes=notes,
        )


def _counts(data: DataSettings, data_dir: Path | None) -> _Counts:
    drawn = synthetic_settings(data)
    tables = {
        name: load_photographs(name, data_dir, on_fault=data.on_fault, synthetic=drawn)
        for name in data.names
    }
    first, total = tables[data.dataset], sum(map(len, tables.values()))
    started = time.process_time()
    for row in first.rows[:_DECODED]:
        decode_one(first.reader, row, data.size, data.crop, data.normalise)
    decoding = (time.process_time() - started) / len(first.rows[:_DECODED])
    sites = [*parts_of(first, data), *((name, tables[name]) for name in data.then)]
    splits = [split_of(name, table, data) for name, table in sites]
    train, validation, test = (
        [len(getattr(split, part)) for split in splits] for part in ("train", "validation", "test")
    )
    tested = sum(test) + sum(len(tables[name]) for name in data.shifted)
    notes = (
        f"{data.dataset}: {sum(train):,} photographs to train on, {sum(validation):,} to choose "
        f"epochs on, {tested:,} to test on",
        f"{data.dataset}: {total:,} photographs of {data.size} pixels are decoded once, in "
        f"{duration(total * decoding / processors())}, into a cache of "
        f"{total * 3 * data.size**2 / 1e9:.2f} GB",
    )
    return _Counts(train, sum(validation), tested, notes)


def _step(recipe: Recipe, size: int, device: str) -> tuple[int, int, float, int]:
    """Trained numbers; bytes kept and seconds of a step for a photograph; samples of a test."""
    few = {"epochs": 3, "select": "last", "patience": None}
    trainer = trainer_of(recipe.model_copy(update=few), size, 0, device)
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    photographs = min(recipe.batch_size, max(1, _PIXELS // size**2))
    x = torch.rand(photographs, 3, size, size, device=device)
    tasks = [(x, torch.zeros(photographs, dtype=torch.int64, device=device))]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        ends = [clock(device) for _ in trainer.steps(tasks)]
    method = trainer.method
    samples = recipe.eval_samples if draws(recipe, type(method)) else method.eval_samples
    # The first step sets up, and the last one ends the task.
    seconds = (ends[1] - ends[0]) / photographs
    numbers = sum(parameter.numel() for parameter in method.network.parameters())
    return numbers, sum(kept.values()) // photographs, seconds, samples
