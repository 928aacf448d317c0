"""Strategies on the digits, made, trained and asked as `scenarios.Learner` does with methods."""

from functools import cache

import torch
from avalanche.core import SupervisedPlugin
from avalanche.models import MultiTaskModule
from avalanche.training.plugins import EvaluationPlugin
from scenarios import ADAM, digits, network, posterior_for

from vcl_radial.data.streams import to_avalanche
from vcl_radial.integrations.avalanche import Scores, methods
from vcl_radial.methods.registry import built_in_class
from vcl_radial.nn import MultiHead


@cache
def benchmark(heads):
    return to_avalanche(digits(heads))


def strategy_class(name):
    """The strategy of a method by the method's name."""
    return getattr(methods, built_in_class(name).__name__)


class Driven:
    """A strategy and the benchmark that it trains on; a number of the stream is a task.

    Args:
        kind: the class of a strategy, or the name of a method.
        net: that learns.
        tensors: whether batches are cut from the stream, in place of Avalanche's loaders.
        optimizer: as the strategy takes it; by default Adam of the rate `lr`.
        settings: the strategy's.
    """

    def __init__(self, kind, net=None, *, tensors=True, lr=1e-3, optimizer=None, **settings):
        if isinstance(kind, str):
            net = network(posterior_for(kind)) if net is None else net
            kind = strategy_class(kind)
        net = network() if net is None else net
        with_heads = any(isinstance(m, MultiHead | MultiTaskModule) for m in net.modules())
        heads = "multi" if with_heads else "single"
        self.stream = digits(heads)
        self.tasks = list(benchmark(heads).train_stream)
        self.tests = list(benchmark(heads).test_stream)
        settings = {
            "optimizer": optimizer or (lambda module: ADAM(module.parameters(), lr=lr)),
            "train_mb_size": 32,
            "eval_mb_size": 500,
            "train_epochs": 1,
            "eval_samples": 5,
            "evaluator": EvaluationPlugin(Scores()),
            "tensor_stream": self.stream if tensors else None,
            **settings,
        }
        self.strategy = kind(model=net, **settings)
        self.network, self.method = self.strategy.network, self.strategy.method

    def train(self, *numbers):
        """Learn tasks one after another, or all together where the method wants that."""
        whole_stream = self.strategy.needs_whole_stream
        for group in [numbers] if whole_stream else [(number,) for number in numbers]:
            torch.manual_seed(group[0])  # the randomness of a task is its own, wherever it comes
            tasks = [self.tasks[number] for number in group]
            self.strategy.train(tasks if whole_stream else tasks[0], eval_streams=[])
        return self

    @property
    def scores(self):
        (scores,) = (p for p in self.strategy.evaluator.metrics if isinstance(p, Scores))
        return scores

    def evaluate(self, number):
        """The scores on the test points of a task."""
        self.strategy.eval([self.tests[number]])
        return self.scores.values

    def predictions(self, *numbers):
        """The log-predictive of the test points of some tasks, `[B, C]`."""
        rows = []
        for number in numbers:
            self.evaluate(number)
            rows.append(self.scores.predictions)
        return torch.cat(rows)

    def accuracy(self, *numbers):
        """The mean of the tasks' accuracies, in per cent."""
        return sum(self.evaluate(number)["accuracy"] for number in numbers) / len(numbers)

    def weights(self):
        """All of them in one vector."""
        return torch.cat([p.detach().flatten() for p in self.strategy.model.parameters()])


def witness(**callbacks):
    """A plugin with these callbacks, each a function of the strategy."""
    methods = {
        event: lambda self, strategy, look=look, **kwargs: look(strategy)
        for event, look in callbacks.items()
    }
    return type("Witness", (SupervisedPlugin,), methods)()
