"""Memory of a training: what it holds, counted from tensors, and its peak in a fresh process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vcl_radial.bench.data import noise
from vcl_radial.bench.processes import run_python
from vcl_radial.bench.setting import Images, Row, Setting, row
from vcl_radial.bench.training import TWO_TASKS, Training, number_of_weights

_BYTES_PER_WEIGHT = 4
_PROBE_BATCH = 32
"""Rows of a batch where weights are to outweigh activations."""


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


def of_widths(methods: Sequence[str], setting: Setting) -> list[Row]:
    """Peak and lasting memory of wide networks, in multiples of their weights."""
    images = noise(setting.scratch / "probe", 4, _PROBE_BATCH, 1)
    rows: list[Row] = []
    for width in setting.sizes.probed_widths:
        for method in methods:
            keys = {
                "epochs": 2,
                **setting.sizes.recipe,
                **TWO_TASKS,
                "hidden": [width] * 4,
                "batch_size": _PROBE_BATCH,
            }
            found = _in_fresh_process(method, keys, images, setting.device)
            weights = found.pop("weights")
            for kind, size in found.items():
                multiple = size / (_BYTES_PER_WEIGHT * weights)
                rows.append(row("growth", method, f"width={width}", f"memory: {kind}", [multiple]))
    return rows


def probe(method: str, keys: Mapping[str, Any], images: Images, device: str) -> dict[str, int]:
    """Train in this process; weights, bytes held by kind and in all, and the peak where known."""
    torch.set_num_threads(1)
    Training(method, {**keys, "hidden": [8]}, images, device, clock=float).train()  # loads kernels
    before = _memory_in_use(device)
    training = Training(method, keys, images, device, clock=float)
    training.train()
    found = {"weights": number_of_weights(training.layers, heads=2)}
    found |= state_bytes(training.strategy)
    found["all of these"] = sum(found.values()) - found["weights"]
    peak = _peak_memory(device)
    if before is not None and peak is not None:
        found["peak above the start"] = peak - before
    return found


def _in_fresh_process(
    method: str, keys: Mapping[str, Any], images: Images, device: str
) -> dict[str, int]:
    order = {"method": method, "keys": dict(keys), "device": device}
    order["images"] = {"dataset": images.dataset, "folder": str(images.folder)}
    answer = run_python(["-m", __name__], json.dumps(order))
    counted: dict[str, int] = json.loads(answer.splitlines()[-1])
    return counted


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
    order = json.load(sys.stdin)
    place = order.pop("images")
    images = Images(place["dataset"], Path(place["folder"]), "")
    print(json.dumps(probe(**order, images=images)))


if __name__ == "__main__":
    _main()
