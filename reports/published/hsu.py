"""Why cells differ from Table 2 of Hsu et al. 2018: each difference from their code by itself.

    python reports/published/hsu.py reports/published/hsu-settings.csv   # with VCL_RADIAL_DATA set

A plain loop with the settings of their scripts: two layers of 400 units, batches of 128, four
epochs per task, Adam at 1e-3 (SGD at 0.01). `--seeds N` and `--method NAME ...` measure less. The
same command resumes with the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, pad

from vcl_radial.data.streams import load_dataset
from vcl_radial.data.streams.image_data import ImageData

TASKS, EPOCHS, BATCH, UNITS, MEMORY = 5, 4, 128, 400, 1_100

# Their `reg_coef`, for many heads and for one head: c of a penalty c sum importance (w - w*)^2.
STRENGTHS = {
    "l2": (0.01, 100.0),
    "ewc": (400.0, 100.0),
    "ewc-separate": (100.0, 600.0),
    "si": (300.0, 600.0),
    "mas": (1.0, 1.0),
}
HEADS = ("many", "one")
METHODS = ("naive", "naive-sgd", *STRENGTHS, "replay", "joint")


@dataclass(frozen=True)
class Setting:
    """Differences between the suite (all False) and their code.

    Attributes:
        kept: whether the optimiser's moments carry over from task to task.
        left_out: whether one head's softmax leaves out the classes of later tasks.
        theirs: whether EWC uses the most probable class, MAS uses the gradient of a batch's mean,
            and a memory is repeated until there are as many old images as new images.
        padded: whether images are padded to 32 x 32.
    """

    kept: bool = False
    left_out: bool = False
    theirs: bool = False
    padded: bool = False


NAMES = {
    "kept": "moments go on",
    "left_out": "classes to come left out",
    "theirs": "their importance or memory",
    "padded": "32 x 32",
}


def settings(method: str, one_head: bool) -> Iterator[tuple[str, Setting]]:
    """No difference, each single difference that the method has, and all differences."""
    can_differ = {
        "kept": method not in ("naive-sgd", "joint"),
        "left_out": one_head and method != "joint",
        "theirs": method in ("ewc", "ewc-separate", "mas", "replay"),
        "padded": True,
    }
    has = [name for name, differs in can_differ.items() if differs]
    yield "as here", Setting()
    for name in has:
        yield NAMES[name], Setting(**{name: True})
    if len(has) > 1:
        yield "all", Setting(**dict.fromkeys(has, True))


class Network:
    """Two layers of ReLU units and ten outputs; a head is two columns of the outputs."""

    def __init__(self, inputs: int) -> None:
        sizes = (inputs, UNITS, UNITS, 2 * TASKS)
        layers = [torch.nn.Linear(*pair) for pair in pairwise(sizes)]
        self.parameters = [p for layer in layers for p in layer.parameters()]

    def __call__(self, x: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """The outputs, and each layer's inputs and outputs before the ReLU."""
        into, out = [x], []
        for weight, bias in zip(self.parameters[::2], self.parameters[1::2], strict=True):
            out.append(linear(into[-1], weight, bias))
            into.append(out[-1].relu())
        return out[-1], into[:-1], out


class Run:
    """One seed of a method."""

    def __init__(
        self, data: ImageData, seed: int, method: str, one_head: bool, setting: Setting
    ) -> None:
        torch.manual_seed(seed)
        self.method, self.one_head, self.setting = method, one_head, setting
        self.x, self.test_x = (
            _pixels(part, setting.padded) for part in (data.train_x, data.test_x)
        )
        self.y, self.test_y = data.train_y, data.test_y
        self.network = Network(self.x.shape[1])
        self.optimizer = self._optimizer()
        self.penalties: list[tuple[list[Tensor], list[Tensor]]] = []
        self.path = [torch.zeros_like(p) for p in self.network.parameters]  # of SI
        self.memory: list[Tensor] = []
        self.start = self._values()

    def accuracy(self) -> float:
        """Train on all tasks; return the mean accuracy over them at the end, in per cent."""
        if self.method == "joint":
            self._train(torch.arange(len(self.y)), TASKS - 1)
        else:
            for task in range(TASKS):
                if not self.setting.kept:
                    self.optimizer = self._optimizer()
                rows = torch.nonzero(self.y // 2 == task).squeeze(1)
                self._train(self._with_memory(rows), task)
                self._remember(rows, task)
        with torch.no_grad():
            outputs = self.network(self.test_x)[0]
        # With many heads the task is known, so that only its two columns can be right.
        shown = outputs if self.one_head else self._masked_outputs(outputs, self.test_y)
        right = (shown.argmax(1) == self.test_y).float()
        return 100 * sum(right[self.test_y // 2 == t].mean().item() for t in range(TASKS)) / TASKS

    def _optimizer(self) -> torch.optim.Optimizer:
        if self.method == "naive-sgd":
            return torch.optim.SGD(self.network.parameters, 0.01)
        return torch.optim.Adam(self.network.parameters, 1e-3)

    def _values(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.network.parameters]

    def _train(self, rows: Tensor, task: int) -> None:
        for _ in range(EPOCHS):
            for batch in rows[torch.randperm(len(rows))].split(BATCH):
                outputs, y = self.network(self.x[batch])[0], self.y[batch]
                if self.one_head:
                    self._step(cross_entropy(self._open(outputs, task), y))
                else:
                    self._step(cross_entropy(self._masked_outputs(outputs, y), y))

    def _step(self, loss: Tensor) -> None:
        """Make a step; SI adds the decrease of the task's loss in this step, by parameter."""
        parameters, before, alone = self.network.parameters, [], []
        if self.method == "si":
            before = self._values()
            alone = torch.autograd.grad(loss, parameters, retain_graph=True)
        # Filled with zeros, as PyTorch did then: moments keep moving old heads.
        self.optimizer.zero_grad(set_to_none=False)
        (loss + self._penalty()).backward()
        self.optimizer.step()
        for path, old, now, grad in zip(self.path, before, parameters, alone, strict=False):
            path.sub_(grad * (now.detach() - old))

    def _open(self, outputs: Tensor, task: int) -> Tensor:
        """The outputs that the loss of a task sees."""
        if not self.one_head:
            return outputs[:, 2 * task : 2 * task + 2]
        return outputs[:, : 2 * task + 2] if self.setting.left_out else outputs

    @staticmethod
    def _masked_outputs(outputs: Tensor, y: Tensor) -> Tensor:
        """All outputs outside the head of a row are -inf."""
        columns = torch.arange(2 * TASKS) // 2
        return outputs.where(columns == (y // 2).unsqueeze(1), -torch.inf)

    def _penalty(self) -> Tensor | float:
        return sum(
            (weight * (p - anchor).square()).sum()
            for weights, anchors in self.penalties
            for p, weight, anchor in zip(self.network.parameters, weights, anchors, strict=True)
        )

    def _with_memory(self, rows: Tensor) -> Tensor:
        if not self.memory:
            return rows
        copies = max(len(rows) // MEMORY, 1) if self.setting.theirs else 1
        return torch.cat([rows, *self.memory * copies])

    def _remember(self, rows: Tensor, task: int) -> None:
        """Keep images, or a penalty on changes of weights that the task needs."""
        if self.method == "replay":
            share = MEMORY // (task + 1)
            fresh = rows[torch.randperm(len(rows))]
            self.memory = [kept[:share] for kept in (*self.memory, fresh)]
        if self.method not in STRENGTHS:
            return
        strength = STRENGTHS[self.method][self.one_head]
        if self.method == "mas" and not self.setting.theirs:
            # The paper sums the squared outputs, and they average them.
            strength /= 2 * TASKS if self.one_head else 2
        weights = [strength * weight for weight in self._importances(rows, task)]
        if self.penalties and self.method in ("ewc", "si", "mas"):
            ((sums, _),) = self.penalties
            weights = [weight + total for weight, total in zip(weights, sums, strict=True)]
        if self.method != "ewc-separate":
            self.penalties.clear()
        self.start = self._values()
        self.penalties.append((weights, self.start))

    def _importances(self, rows: Tensor, task: int) -> list[Tensor]:
        if self.method == "l2":
            return [torch.ones_like(p) for p in self.network.parameters]
        if self.method == "si":
            pairs = zip(self.path, self._values(), self.start, strict=True)
            omega = [path / ((now - old).square() + 0.1) for path, now, old in pairs]
            self.path = [torch.zeros_like(path) for path in self.path]
            return omega
        by_batch = self.method == "mas" and self.setting.theirs
        importance = self._batch_importance if by_batch else self._point_importance
        total = [torch.zeros_like(p) for p in self.network.parameters]
        batches = rows.split(BATCH)
        for batch in batches:
            for sums, part in zip(total, importance(batch, task), strict=True):
                sums.add_(part, alpha=1 / (len(batches) if by_batch else len(rows)))
        return total

    def _batch_importance(self, batch: Tensor, task: int) -> list[Tensor]:
        loss = self._open(self.network(self.x[batch])[0], task).square().mean()
        return [grad.abs() for grad in torch.autograd.grad(loss, self.network.parameters)]

    def _point_importance(self, batch: Tensor, task: int) -> list[Tensor]:
        """The sum over the batch, from the gradient of each point, which is an outer product."""
        outputs, into, out = self.network(self.x[batch])
        shown = self._open(outputs, task)
        if self.method == "mas":
            loss = shown.square().sum()
        else:
            first = 0 if self.one_head else 2 * task
            y = shown.argmax(1) if self.setting.theirs else self.y[batch] - first
            loss = cross_entropy(shown, y, reduction="sum")
        parts = []
        for a, delta in zip(into, torch.autograd.grad(loss, out), strict=True):
            size, slope = (v.abs() if self.method == "mas" else v.square() for v in (a, delta))
            parts += [(slope.T @ size).detach(), slope.sum(0)]
        return parts


def _pixels(images: Tensor, padded: bool) -> Tensor:
    """Pixels as in their code, standardised by 0.1 and 0.2752."""
    x = images.float() / 255
    return ((pad(x, (2, 2, 2, 2)) if padded else x).flatten(1) - 0.1) / 0.2752


def main() -> None:
    """Write the accuracy of every cell, setting and seed, run by run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("to", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--method", nargs="+", default=METHODS, choices=METHODS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = load_dataset("mnist")
    to, columns = arguments.to, ["method", "heads", "setting", "seed"]
    done = {tuple(row) for row in pd.read_csv(to)[columns].values} if to.exists() else set()
    for seed, method, heads in product(range(arguments.seeds), arguments.method, HEADS):
        for name, setting in settings(method, heads == "one"):
            if (method, heads, name, seed) not in done:
                score = Run(data, seed, method, heads == "one", setting).accuracy()
                row = pd.DataFrame([[method, heads, name, seed, f"{score:.4f}"]])
                row.columns = [*columns, "average_accuracy"]
                row.to_csv(to, mode="a", header=not to.exists(), index=False)


if __name__ == "__main__":
    main()
