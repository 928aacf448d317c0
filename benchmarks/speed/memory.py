"""Memory of a training: held bytes, counted from tensors, and the peak in a new process."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.speed.setting import Keys, Row, Setting, rows_of
from benchmarks.speed.training import LaneTraining, Training
from vcl_radial.tracks.continual.evaluation import evaluate

PEAK, HELD = "memory: peak (MB)", "memory: held (MB)"
_MB = 1e6

Probe = Callable[..., Training | LaneTraining]
"""A function that trains; its keyword `hidden` changes the network."""


def rows_of_probes(probes: Mapping[tuple[str, str], Probe]) -> list[Row]:
    """The rows of peak and lasting memory; probes are by variant and size."""
    measured = in_fresh_processes(list(probes.values()))
    return [
        row
        for (variant, size), metrics in zip(probes, measured, strict=True)
        for row in rows_of({name: {variant: [mb]} for name, mb in metrics.items()}, size)
    ]


def in_fresh_processes(probes: Sequence[Probe]) -> list[dict[str, float]]:
    """The result of `measure_probe` for each probe, in new processes without earlier work."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with context.Pool(1, maxtasksperchild=1) as processes:
        return processes.map(measure_probe, probes, chunksize=1)


def measure_probe(probe: Probe) -> dict[str, float]:
    """Train in this process; return the peak above the start, if known, and held bytes."""
    torch.set_num_threads(1)
    probe(hidden=[8])  # the first use makes lasting objects
    before, _ = memory()
    training = probe()
    _, peak = memory()
    metrics = {PEAK: (peak - before) / _MB} if peak else {}
    if isinstance(training, Training):
        metrics[HELD] = held_bytes(training.method.network, training.optimizer) / _MB
    return metrics


def train_tasks(method: str, keys: Keys, setting: Setting, **more: Any) -> Training:
    """Train all tasks, and score the last task."""
    training = Training(method, {**keys, **more}, setting)
    for number in range(1, training.stream.n_tasks):
        training.train_task(number)
    evaluate(training.method, training.stream, "test", training.stream.n_tasks)
    return training


def train_lanes(lanes: int, keys: Keys, setting: Setting, **more: Any) -> LaneTraining:
    """Train the first two tasks of many runs as one program."""
    training = LaneTraining(lanes, {**keys, **more}, setting)
    training.train()
    return training


def held_bytes(network: nn.Module, optimizer: Any) -> int:
    """Bytes that live as long as the training: parameters, gradients, prior, optimiser."""
    parameters = list(network.parameters())
    slots = [slot for slots in optimizer.state.values() for slot in slots.values()]
    held = [*parameters, *(p.grad for p in parameters), *network.buffers(), *slots]
    return sum({t.data_ptr(): t.nbytes for t in held if isinstance(t, Tensor)}.values())


def memory() -> tuple[int, int]:
    """Bytes in use, and the peak: on a GPU since the last call, else since the process began.

    Without a GPU the numbers come from Linux's status of this process; on other systems they are 0.
    `getrusage` is not usable: it gives a new process the peak of its parent.
    """
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        both = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return both
    file = Path("/proc/self/status")
    account = file.read_text() if file.exists() else ""
    sizes = dict(re.findall(r"(\w+):\s+(\d+) kB", account))
    return 1024 * int(sizes.get("VmRSS", 0)), 1024 * int(sizes.get("VmHWM", 0))
