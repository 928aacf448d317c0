"""Strategies on split-digits, as several tests make, train and question them."""

import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch.optim import Adam

from vcl_radial.strategies import Scores


def make(method, network, stream=None, lr=1e-3, **settings):
    settings = {
        "optimizer": lambda model: Adam(model.parameters(), lr=lr, fused=True),
        "train_mb_size": 32,
        "eval_mb_size": 500,
        "train_epochs": 1,
        "eval_samples": 5,
        "evaluator": EvaluationPlugin(Scores()),
        "tensor_stream": stream,
        **settings,
    }
    return method(model=network, **settings)


def train(strategy, experiences):
    for experience in experiences:
        # The randomness of a task is its own, wherever it comes.
        torch.manual_seed(experience.current_experience)
        strategy.train(experience, eval_streams=[])


def weights(strategy):
    return torch.cat([p.detach().flatten() for p in strategy.model.parameters()])


def scores_of(strategy):
    (scores,) = (p for p in strategy.evaluator.metrics if isinstance(p, Scores))
    return scores


def predictions(strategy, experiences):
    """The log-predictive of all points."""
    found = []
    for experience in experiences:
        strategy.eval([experience])
        found.append(scores_of(strategy).predictions)
    return torch.cat(found)


def score(strategy, experiences, name="accuracy"):
    """The mean of a score over the experiences."""
    found = []
    for experience in experiences:
        strategy.eval([experience])
        found.append(scores_of(strategy).values[name])
    return sum(found) / len(found)


class Steps(SupervisedPlugin):
    """The losses of the steps."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def before_backward(self, strategy, **kwargs):
        self.losses.append(strategy.loss.detach().squeeze())


def standing(strategy, experience):
    """The losses of a pass over an experience, no step of which moves the weights."""
    steps = Steps()
    strategy.plugins.append(steps)
    strategy.optimizer_step = lambda: None
    strategy.train(experience, eval_streams=[])
    return steps.losses


def loss_of_an_epoch(strategy, experience):
    """The mean loss of a pass over an experience, all of it under the same draw of the weights."""
    recorded = []

    class Recorder(SupervisedPlugin):
        def before_forward(self, strategy, **kwargs):
            torch.manual_seed(5)

        def before_backward(self, strategy, **kwargs):
            recorded.append(strategy.loss.detach() * len(strategy.mb_y))

    strategy.plugins.append(Recorder())
    strategy.optimizer_step = lambda: None  # the weights stay
    strategy.consolidate = lambda experience: None
    strategy.train(experience, eval_streams=[])
    return torch.stack(recorded).sum() / len(experience.dataset)


def assert_it_goes_on_from_its_state(method, options, network_of, scenario, folder):
    """A strategy that takes over another's stored state predicts and goes on as that one does."""
    multi_head, stream, benchmark = scenario
    tasks, tests = list(benchmark.train_stream), list(benchmark.test_stream)
    first, second = (make(method, network_of(multi_head), stream, **options) for _ in range(2))
    train(first, tasks[:2])
    torch.save(first.state_dict(), folder / "state")
    second.load_state_dict(torch.load(folder / "state", weights_only=True))
    before = predictions(first, tests)
    assert torch.equal(before, predictions(second, tests))
    for each in (first, second):
        train(each, tasks[2:4])
    assert torch.equal(weights(first), weights(second))
    after = [predictions(each, tests) for each in (first, second)]
    assert torch.equal(*after)
    assert not torch.equal(after[0], before)


def assert_evaluating_does_not_change_training(method, options, network_of, scenario):
    """With evaluations in between and without, it predicts the same bits in the end."""
    multi_head, stream, benchmark = scenario
    ends = []
    for eval_every in (-1, 1):
        settings = {"eval_every": eval_every, **options}
        strategy = make(method, network_of(multi_head), stream, **settings)
        for experience in list(benchmark.train_stream)[:3]:
            torch.manual_seed(1)
            strategy.train(experience, eval_streams=[benchmark.test_stream[:3]])
            if eval_every > 0:
                strategy.eval(benchmark.test_stream[:3])
        ends.append(predictions(strategy, benchmark.test_stream[:3]))
    assert torch.equal(*ends)
