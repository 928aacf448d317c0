"""The path integral of synaptic intelligence."""

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam

from vcl_radial.strategies.si import SI


@pytest.fixture
def make(make_network, multi_head_stream):
    """SI with the whole task as one batch, so that a step descends the loss itself."""

    def build(optimizer=lambda model: SGD(model.parameters(), lr=1e-3), **settings):
        settings = {"train_mb_size": 1000, "train_epochs": 300} | settings
        return SI(
            model=make_network(None),
            optimizer=optimizer,
            tensor_stream=multi_head_stream,
            eval_samples=1,
            evaluator=EvaluationPlugin(),
            **settings,
        )

    return build


@pytest.fixture
def mean_nll(multi_head_stream):
    def of(strategy, task):
        with torch.no_grad():
            x = multi_head_stream.inputs(task, "train")
            y = multi_head_stream.labels(task, "train")
            return cross_entropy(strategy.network(x, task), y).item()

    return of


def total(strategy):
    return sum(omega.sum().item() for omega in strategy.method.omega.values())


def copies(strategy):
    return {name: w.detach().clone() for name, w in strategy.network.named_parameters()}


@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_the_omegas_sum_to_the_fall_of_the_loss(optimizer, make, mean_nll, multi_head_benchmark):
    """For small steps: what the weights contributed is what was gained (Zenke et al., Eq. 3)."""
    rate = {SGD: 1e-3, Adam: 1e-5}[optimizer]
    strategy = make(lambda model: optimizer(model.parameters(), lr=rate))
    strategy.network.head.adapt([0])
    before = mean_nll(strategy, 0)
    strategy.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    fall = before - mean_nll(strategy, 0)
    assert fall > 0.02
    assert total(strategy) == pytest.approx(fall, rel=0.02)


def test_the_penalty_has_no_part_in_the_omegas(make, mean_nll, multi_head_benchmark):
    """The loss without the penalty is what counts, while the penalty bends the path."""
    strategy = make(train_epochs=100, penalty_weight=1e4)
    strategy.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    strategy.network.head.adapt([1])
    with torch.no_grad():  # far from the anchor, so that the penalty is all that pulls
        for weight in strategy.network.body.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    before = mean_nll(strategy, 1)
    penalty = strategy.method.past.penalty(copies(strategy)).item()
    strategy.train(multi_head_benchmark.train_stream[1], eval_streams=[])
    fall = before - mean_nll(strategy, 1)
    scale = strategy.penalty_weight / len(multi_head_benchmark.train_stream[1].dataset)
    assert scale * penalty > 10 * abs(fall)
    assert total(strategy) == pytest.approx(fall, rel=0.05, abs=0.002)


@pytest.mark.parametrize("batch_size", [32, 1000])
@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_the_importances_are_the_damped_path_integrals(
    optimizer, batch_size, make, multi_head_benchmark
):
    """Against a plugin that follows each step from outside; with the penalty at work in task 2."""

    class Follow(SupervisedPlugin):
        def before_training_exp(self, strategy, **kwargs):
            self.start, self.path = copies(strategy), {}

        def before_backward(self, strategy, **kwargs):
            nll = cross_entropy(strategy.mb_logits, strategy.mb_y)
            names = [n for n, _ in strategy.network.named_parameters()]
            weights = list(strategy.network.parameters())
            found = torch.autograd.grad(nll, weights, retain_graph=True, allow_unused=True)
            self.slopes = {n: g for n, g in zip(names, found, strict=True) if g is not None}
            self.before = copies(strategy)

        def after_update(self, strategy, **kwargs):
            after = copies(strategy)
            for name, slope in self.slopes.items():
                step = -slope * (after[name] - self.before[name])
                self.path[name] = self.path.get(name, 0) + step

    follow, xi, expected = Follow(), 0.03, {}
    strategy = make(
        lambda model: optimizer(model.parameters(), lr=1e-2),
        train_mb_size=batch_size,
        train_epochs=3,
        plugins=[follow],
        xi=xi,
    )
    for experience in list(multi_head_benchmark.train_stream)[:2]:
        torch.manual_seed(0)
        strategy.train(experience, eval_streams=[])
        end, points = copies(strategy), len(experience.dataset)
        for name, path in follow.path.items():
            moved = end[name] - follow.start[name]
            new = 2 * points * path / (moved.square() + xi)
            expected[name] = (expected.get(name, 0) + new).clamp(min=0)
        assert strategy.method.past.precision.keys() == expected.keys()
        for name, precision in strategy.method.past.precision.items():
            torch.testing.assert_close(precision, expected[name], rtol=1e-3, atol=1e-3)
            assert precision.max() > 0
