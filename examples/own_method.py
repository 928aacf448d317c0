"""Write a method as one class and run it.

python examples/own_method.py
"""

import torch
from avalanche.training.plugins import EvaluationPlugin
from torch.optim import Adam

from vcl_radial.data.streams import build_stream, to_avalanche
from vcl_radial.methods.base import Method
from vcl_radial.nn import MLP
from vcl_radial.strategies import Scores, Strategy


class PullToOld(Method):
    """loss = mean NLL + strength / 2 ||w - w_old||^2 / N, with N the points of the task."""

    def __init__(self, network, *, strength=300.0, **settings):
        super().__init__(network, **settings)
        self.strength, self.old = strength, {}

    def penalty(self):
        """How far the weights in use are from those of the last task, in nats."""
        in_use = self.parameters_in_use().items()
        squares = [(w - self.old[name]).square().sum() for name, w in in_use if name in self.old]
        return self.strength / 2 * torch.stack(squares).sum() if squares else 0.0

    def end_task(self, task):
        """Remember the weights that the task has trained."""
        self.old |= {n: w.detach().clone() for n, w in self.trained_parameters().items()}

    def state_dict(self):
        """The network and the old weights."""
        return super().state_dict() | {"old": self.old}

    def load_state_dict(self, state):
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self.old = state["old"]


def average_accuracy(strength):
    """In per cent, on three permutations of the digits, with one head for all."""
    torch.manual_seed(0)
    stream = build_stream({"kind": "permuted", "dataset": "digits", "tasks": 3, "heads": "single"})
    benchmark, scores = to_avalanche(stream), Scores()
    strategy = Strategy(
        PullToOld(MLP(64, 10, hidden=[100], multi_head=False, posterior=None), strength=strength),
        optimizer=lambda model: Adam(model.parameters(), lr=3e-3),
        train_mb_size=32,
        train_epochs=10,
        eval_mb_size=500,
        evaluator=EvaluationPlugin(scores, loggers=[]),
        tensor_stream=stream,
    )
    for experience in benchmark.train_stream:
        strategy.train(experience, eval_streams=[])
    accuracies = []
    for experience in benchmark.test_stream:
        strategy.eval([experience])
        accuracies.append(scores.values["accuracy"])
    return sum(accuracies) / len(accuracies)


if __name__ == "__main__":
    for strength in (0.0, 300.0):
        print(f"strength {strength:5.0f}: {average_accuracy(strength):.1f} % after three tasks")
