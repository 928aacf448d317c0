"""VCL and Avalanche's own EWC on one Avalanche benchmark.

python examples/avalanche_benchmark.py
"""

import torch
from avalanche.benchmarks import nc_benchmark
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import EvaluationPlugin, EWCPlugin
from sklearn.datasets import load_digits
from torch.optim import Adam
from torch.utils.data import TensorDataset

from vcl_radial.integrations.avalanche import Strategy
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MLP

torch.manual_seed(0)


class Digits(TensorDataset):
    """Images and labels, the labels by name as Avalanche wants them."""

    targets = property(lambda self: self.tensors[1].tolist())


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = (Digits(x[rows], y[rows]) for rows in (order[300:], order[:300]))
benchmark = nc_benchmark(
    train, test, n_experiences=5, task_labels=True, class_ids_from_zero_in_each_exp=True, seed=0
)


def average_accuracy(method, *plugins):
    """In per cent, over all tasks after the last one."""
    evaluator = EvaluationPlugin(accuracy_metrics(stream=True), loggers=[])
    strategy = Strategy(
        method,
        optimizer=lambda model: Adam(model.parameters(), lr=3e-3),
        train_mb_size=64,
        train_epochs=4,
        plugins=[*plugins],
        evaluator=evaluator,
    )
    for experience in benchmark.train_stream:
        strategy.train(experience, eval_streams=[])
    (accuracy,) = strategy.eval(benchmark.test_stream).values()
    return 100 * accuracy


print(f"radial VCL          {average_accuracy(VCL(MLP(64, 2, hidden=[100]))):.1f} %")
point = MLP(64, 2, hidden=[100], posterior=None)
print(f"Avalanche's own EWC {average_accuracy(Naive(point), EWCPlugin(ewc_lambda=100)):.1f} %")
