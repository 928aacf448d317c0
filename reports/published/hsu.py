"""Why fine-tuning keeps more here than in Hsu et al. 2018: what differs, one by one.

    python reports/published/hsu.py reports/published/hsu-settings.csv   # with VCL_RADIAL_DATA set

Many heads, Adam at 1e-3, batches of 128, four epochs a task, two layers of 400 units; a plain loop.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from vcl_radial.data.streams import load_dataset

TASKS, SEEDS = 5, range(10)
SETTINGS = {
    "as here": {"kept": False, "padded": False},
    "Adam's moments go on": {"kept": True, "padded": False},
    "images of 32 x 32": {"kept": False, "padded": True},
    "both": {"kept": True, "padded": True},
}


def images(data: Tensor, padded: bool) -> Tensor:
    """Pixels as their code has them: padded, and standardised by 0.1 and 0.2752."""
    x = data.float() / 255
    return ((pad(x, (2, 2, 2, 2)) if padded else x).flatten(1) - 0.1) / 0.2752


def accuracy(seed: int, *, kept: bool, padded: bool) -> float:
    """Mean accuracy over all tasks after the last one, in per cent."""
    torch.manual_seed(seed)
    data = load_dataset("mnist")
    x, test_x = (images(part, padded) for part in (data.train_x, data.test_x))
    body = nn.Sequential(nn.Linear(x.shape[1], 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU())
    heads = nn.ModuleList(nn.Linear(400, 2) for _ in range(TASKS))
    parameters = [*body.parameters(), *heads.parameters()]
    adam = torch.optim.Adam(parameters, 1e-3)
    for task, head in enumerate(heads):
        if not kept:
            adam = torch.optim.Adam(parameters, 1e-3)
        rows = torch.nonzero(data.train_y // 2 == task).squeeze(1)
        for _ in range(4):
            for batch in rows[torch.randperm(len(rows))].split(128):
                loss = cross_entropy(head(body(x[batch])), data.train_y[batch] % 2)
                # Their PyTorch filled gradients with zeros: old heads go on by their moments.
                adam.zero_grad(set_to_none=not kept)
                loss.backward()
                adam.step()
    right = []
    with torch.no_grad():
        for task, head in enumerate(heads):
            rows = data.test_y // 2 == task
            predicted = head(body(test_x[rows])).argmax(1)
            right.append((predicted == data.test_y[rows] % 2).float().mean().item())
    return 100 * sum(right) / TASKS


def main(path: Path) -> None:
    """Write the accuracy of every setting and seed."""
    torch.set_num_threads(1)
    rows = [
        (name, seed, accuracy(seed, **setting))
        for seed in SEEDS
        for name, setting in SETTINGS.items()
    ]
    table = pd.DataFrame(rows, columns=["setting", "seed", "average_accuracy"])
    table.to_csv(path, index=False)
    print(table.groupby("setting")["average_accuracy"].agg(["mean", "std"]).round(2))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
