"""Train a method in plain PyTorch, without Avalanche.

python examples/plain_pytorch.py
"""

import torch

import vcl_radial as vr

torch.manual_seed(0)
stream = vr.benchmark("split-digits-multi-head")
method = vr.VCL(vr.MLP(64, stream.n_classes, hidden=[100], posterior="radial"))
trainer = vr.Trainer(method, learning_rate=3e-3, epochs=10)

for epoch in trainer.steps(stream):
    if epoch.epoch < trainer.epochs:
        continue
    right = [
        (method.predict(task.test[0], task.head).argmax(1) == task.test[1])
        for task in list(stream)[: trainer.done]
    ]
    accuracies = "  ".join(f"{100 * r.float().mean():5.1f}" for r in right)
    print(f"after task {trainer.done}: {accuracies} % of each task so far")
