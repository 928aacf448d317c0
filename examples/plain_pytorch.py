"""Train a method in a loop of plain PyTorch, without Avalanche.

python examples/plain_pytorch.py
"""

import torch
from torch.optim import Adam

from vcl_radial.data.streams import build_stream
from vcl_radial.methods.loop import TaskLoop
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MLP

torch.manual_seed(0)
stream = build_stream({"kind": "split", "dataset": "digits", "heads": "multi"})
method = VCL(MLP(64, stream.n_classes, hidden=[100], posterior="radial"))

for number in range(stream.n_tasks):
    x, y = stream.inputs(number, "train"), stream.labels(number, "train")
    points = Batch(x, y, task=number)
    task = Task(number, len(y), lambda points=points: points.split(500), heads=[number])
    loop = TaskLoop(method, task, lambda network: Adam(network.parameters(), lr=3e-3))
    for epoch in range(10):
        loop.learn(map(points.at, torch.randperm(len(y)).split(32)), epoch / 10)
    loop.end()

    right = [
        (method.predict(stream.inputs(t, "test"), t).argmax(1) == stream.labels(t, "test"))
        for t in range(number + 1)
    ]
    accuracies = "  ".join(f"{100 * r.float().mean():5.1f}" for r in right)
    print(f"after task {number + 1}: {accuracies} % of each task so far")
