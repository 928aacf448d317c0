"""Train a method in a loop of plain PyTorch, without Avalanche.

python examples/plain_pytorch.py
"""

import torch
from torch.optim import Adam

from vcl_radial.data.streams import build_stream
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MLP

torch.manual_seed(0)
stream = build_stream({"kind": "split", "dataset": "digits", "heads": "multi"})
method = VCL(MLP(64, stream.n_classes, hidden=[100], posterior="radial"))

for number in range(stream.n_tasks):
    x, y = stream.inputs(number, "train"), stream.labels(number, "train")
    task = Task(number, len(y), lambda x=x, y=y, head=number: [Batch(x, y, head)], heads=[number])
    method.network.train()
    method.begin_task(task)
    optimizer = method.make_optimizer(lambda network: Adam(network.parameters(), lr=3e-3))
    for _ in range(10):
        for rows in torch.randperm(len(y)).split(32):
            method.learn(Batch(x[rows], y[rows], number), optimizer)
    method.end_task(task)

    method.network.eval()
    right = [
        (method.predict(stream.inputs(t, "test"), t).argmax(1) == stream.labels(t, "test"))
        for t in range(number + 1)
    ]
    accuracies = "  ".join(f"{100 * r.float().mean():5.1f}" for r in right)
    print(f"after task {number + 1}: {accuracies} % of each task so far")
