"""Memory of a training: what it holds, counted from tensors, and its peak in a fresh process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.speed.lane_training import LaneTraining, runs_of
from benchmarks.speed.processes import run_python
from benchmarks.speed.setting import Images, Row, row
from benchmarks.speed.training import Training, number_of_weights

PEAK = "memory: peak (MB)"
_MB = 1e6


class Probe(NamedTuple):
    """What is trained to measure its memory: every task, and then the last one is scored.

    With `lanes` it is so many runs as one program, and the first two tasks.
    """

    method: str
    keys: Mapping[str, Any]
    images: Images
    device: str
    lanes: int = 0


def state_bytes(strategy: Any) -> dict[str, int]:
    """Bytes that live as long as the training, by kind; a tensor of two kinds counts once."""
    network = strategy.network
    parameters = list(network.parameters())
    optimizer_state = [
        value
        for slots in strategy.optimizer.state.values()
        for value in slots.values()
        if isinstance(value, Tensor)
    ]
    kinds: dict[str, Iterable[Tensor]] = {
        "parameters": parameters,
        "gradients": [p.grad for p in parameters if p.grad is not None],
        "prior": network.buffers(),
        "optimiser": optimizer_state,
    }
    counted: set[int] = set()
    return {kind: _bytes(tensors, counted) for kind, tensors in kinds.items()}


def peaks(section: str, probes: Mapping[tuple[str, str], Probe]) -> list[Row]:
    """Peak and lasting memory.

    Args:
        section: of the rows.
        probes: by variant and size.
    """
    measured = in_fresh_processes(list(probes.values()))
    return [
        row(section, variant, size, metric, [value])
        for (variant, size), metrics in zip(probes, measured, strict=True)
        for metric, value in metrics.items()
    ]


def measure_probe(probe: Probe) -> dict[str, float]:
    """Train in this process: the peak above the start, where it is known, and what is held."""
    torch.set_num_threads(1)
    _train(probe._replace(keys={**probe.keys, "hidden": [8]}, lanes=min(probe.lanes, 1)))  # kernels
    before = _memory_in_use(probe.device)
    training = _train(probe)
    peak = _peak_memory(probe.device)
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


def in_fresh_processes(probes: list[Probe]) -> list[dict[str, float]]:
    """What `measure_probe` gives for each, in processes that did nothing before."""
    orders = []
    for probe in probes:
        images = {"dataset": probe.images.dataset, "folder": str(probe.images.folder or "")}
        orders.append({**probe._asdict(), "keys": dict(probe.keys), "images": images})
    answer = run_python(["-m", __name__], json.dumps(orders))
    measured: list[dict[str, float]] = json.loads(answer.splitlines()[-1])
    return measured


def _train(probe: Probe) -> Training | LaneTraining:
    if probe.lanes:
        runs = runs_of(probe.lanes, probe.images, probe.keys)
        lanes = LaneTraining(runs, probe.images, probe.device, clock=float)
        lanes.train()
        return lanes
    training = Training(probe.method, probe.keys, probe.images, probe.device, clock=float)
    for experience in training.run.train_experiences[1:]:
        training.strategy.train([experience], eval_streams=[])
    training.strategy.eval(training.run.eval_experiences[-1:])
    return training


def _bytes(tensors: Iterable[Tensor], counted: set[int]) -> int:
    total = 0
    for tensor in tensors:
        if tensor.data_ptr() not in counted:
            counted.add(tensor.data_ptr())
            total += tensor.nbytes
    return total


def _memory_in_use(device: str) -> int | None:
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return int(torch.cuda.memory_allocated())
    return _of_this_process("VmRSS")


def _peak_memory(device: str) -> int | None:
    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    return _of_this_process("VmHWM")


def _of_this_process(line: str) -> int | None:
    """A line of Linux's own account, in bytes; None elsewhere.

    `getrusage` would not do: a new process inherits its parent's peak there.
    """
    try:
        account = Path("/proc/self/status").read_text()
    except OSError:
        return None
    (kibibytes,) = (words.split()[1] for words in account.splitlines() if words.startswith(line))
    return 1024 * int(kibibytes)


def _main() -> None:
    """Measure the probes of the standard input, each in a copy of this process."""
    probes = []
    for order in json.load(sys.stdin):
        folder = order["images"]["folder"]
        images = Images(order["images"]["dataset"], Path(folder) if folder else None, "")
        probes.append(Probe(**{**order, "images": images}))
    with get_context("fork").Pool(1, maxtasksperchild=1) as copies:
        print(json.dumps(copies.map(measure_probe, probes, chunksize=1)))


if __name__ == "__main__":
    _main()
