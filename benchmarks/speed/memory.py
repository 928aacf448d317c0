"""Memory of a training: what it holds, counted from tensors, and its peak in a fresh process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.speed.setting import Images, Row, Setting, rows_of
from benchmarks.speed.training import LaneTraining, Training, number_of_weights

PEAK = "memory: peak (MB)"
_MB = 1e6


class Probe(NamedTuple):
    """A training whose memory is measured: all tasks, and the scores of the last.

    With `lanes`, that many runs are one program, and train the first two tasks.
    """

    method: str
    keys: Mapping[str, Any]
    images: Images
    setting: Setting
    lanes: int = 0


def peaks(section: str, probes: Mapping[tuple[str, str], Probe]) -> list[Row]:
    """The rows of peak and lasting memory; probes are by variant and size."""
    measured = in_fresh_processes(list(probes.values()))
    rows: list[Row] = []
    for (variant, size), metrics in zip(probes, measured, strict=True):
        rows += rows_of(section, {name: {variant: [of]} for name, of in metrics.items()}, size)
    return rows


def in_fresh_processes(probes: Sequence[Probe]) -> list[dict[str, float]]:
    """The result of `measure_probe` for each, in processes that have only imported packages."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with context.Pool(1, maxtasksperchild=1) as processes:
        return processes.map(measure_probe, probes, chunksize=1)


def measure_probe(probe: Probe) -> dict[str, float]:
    """Train in this process; return the peak above the start, if known, and lasting bytes."""
    torch.set_num_threads(1)
    small = {**probe.keys, "hidden": [8]}
    _train(probe._replace(keys=small, lanes=min(probe.lanes, 1)))  # makes what the first use makes
    before, _ = _memory(probe.setting.device)
    training = _train(probe)
    _, peak = _memory(probe.setting.device)
    metrics = {}
    if before is not None and peak is not None:
        metrics[PEAK] = (peak - before) / _MB
    if isinstance(training, Training):
        held = sum(state_bytes(training.strategy).values())
        weights = number_of_weights(training.layers, heads=training.run.tasks)
        metrics |= {
            "memory: held (MB)": held / _MB,
            "memory: bytes held per weight": held / weights,
        }
    return metrics


def _train(probe: Probe) -> Training | LaneTraining:
    method, keys, images, setting, lanes = probe
    if lanes:
        together = LaneTraining(lanes, keys, images, setting)
        together.train()
        return together
    training = Training(method, keys, images, setting)
    for experience in training.run.train_experiences[1:]:
        training.strategy.train([experience], eval_streams=[])
    training.strategy.eval(training.run.eval_experiences[-1:])
    return training


def state_bytes(strategy: Any) -> dict[str, int]:
    """Bytes that live as long as the training, by kind; a tensor of two kinds counts once."""
    network = strategy.network
    parameters = list(network.parameters())
    slots = [slot for of in strategy.optimizer.state.values() for slot in of.values()]
    kinds: dict[str, Iterable[Any]] = {
        "parameters": parameters,
        "gradients": [p.grad for p in parameters],
        "prior": network.buffers(),
        "optimiser": slots,
    }
    counted: set[int] = set()
    return {kind: new_bytes(values, counted) for kind, values in kinds.items()}


def new_bytes(values: Iterable[Any], counted: set[int]) -> int:
    """Bytes of the tensors among values that were not counted before."""
    total = 0
    for tensor in values:
        if isinstance(tensor, Tensor) and tensor.data_ptr() not in counted:
            counted.add(tensor.data_ptr())
            total += tensor.nbytes
    return total


def _memory(device: str) -> tuple[int | None, int | None]:
    """Bytes in use, and the peak: on a GPU since the last call, else since the process began."""
    if device == "cuda":
        both = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return both
    return status_bytes("VmRSS"), status_bytes("VmHWM")


def status_bytes(line: str) -> int | None:
    """A line of Linux's account of this process, in bytes; None elsewhere.

    `getrusage` would not do: a new process inherits its parent's peak there.
    """
    try:
        account = Path("/proc/self/status").read_text()
    except OSError:
        return None
    (kibibytes,) = (row.split()[1] for row in account.splitlines() if row.startswith(line))
    return 1024 * int(kibibytes)
