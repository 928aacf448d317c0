"""Coreset VCL: one posterior is carried and never sees the coresets, another one predicts."""

from itertools import pairwise

import pytest
import torch
from failing import refuses
from scenarios import ALL, Learner, network

from vcl_radial.nn.blocks import PosteriorBlock


def make(net=None, **settings):
    net = network("gaussian", initial_noise=0.05) if net is None else net
    return Learner("coreset_vcl", net, **settings)


def as_set(x):
    return {tuple(row) for row in x.tolist()}


def means(net):
    return torch.cat([w.detach().flatten() for n, w in net.named_parameters() if "mean" in n])


@pytest.mark.parametrize("selection", ["random", "k-centre"])
def test_the_carried_posterior_never_sees_the_coreset(selection, multi_head):
    options = {"coreset_size": 15, "selection": selection, "coreset_epochs": 1, "ml_epochs": 1}
    learner, before = make(network("gaussian", multi_head), **options), torch.empty(0, 64)
    for task in (0, 1):
        learner.train(task)
        x, y, labels = learner.method.coreset
        assert torch.equal(x[:-15], before)
        heads = [task] * 15 if multi_head else [0] * 15
        assert labels[-15:].tolist() == heads
        points, trained, new = learner.points(task), torch.cat(learner.seen), x[-15:]
        passes = 2 if task == 0 else 1  # the start at the likelihood is one
        assert len(trained) == passes * (len(points.y) - 15)
        assert not as_set(trained) & as_set(new)
        assert as_set(trained) | as_set(new) == as_set(points.x)
        rows = [(points.x == row).all(1).nonzero().item() for row in new]
        assert torch.equal(y[-15:], points.y[rows])
        before = x


def test_a_coreset_brings_back_what_one_head_for_all_has_forgotten():
    """In the prediction alone: without coresets the posterior that is carried predicts."""
    net = network("gaussian", False, initial_noise=0.1)
    learner = make(net, epochs=3, lr=3e-3, coreset_epochs=50).train(0, 1)
    tuned = learner.nll(0)
    learner.method.coreset = ()
    assert tuned < 0.5 * learner.nll(0)


def test_the_prior_of_the_fine_tuning_is_the_carried_posterior():
    """Held against it hard enough, the prediction does not leave it, and with little it does."""
    learner, moved = make(coreset_epochs=0).train(0), []
    carried, method = learner.predictions(0), learner.method
    for weight in (0.0, 1.0, 1e5):
        method.coreset_epochs, method.kl_weight, method._prediction = 30, weight, None
        moved.append((learner.predictions(0) - carried).abs().mean().item())
    assert moved[0] > 1.5 * moved[1] > 0
    assert moved[2] < 0.05 * moved[0]


def test_fine_tuning_leaves_point_heads_as_training_left_them():
    """No prior holds them to it."""
    learner = make(network("gaussian", point_heads=True), coreset_epochs=10).train(0, 1)
    trained = dict(learner.network.named_parameters())
    tuned = dict(learner.method._prediction.named_parameters())
    stayed = {name for name, tensor in trained.items() if torch.equal(tuned[name], tensor)}
    assert stayed == {name for name in trained if "head" in name}
    assert all(tensor.requires_grad for tensor in trained.values())


def test_the_divergence_counts_once_for_the_whole_coreset():
    """Every point twice is as much more to learn from as the divergence with half its weight.

    With next to no noise, for how many numbers the order of the points takes moves all draws.
    """
    net = network("gaussian", initial_noise=1e-6)
    method = make(net, coreset_epochs=0, batch_size=ALL).train(0).method
    method.coreset_epochs, once = 10, method.coreset

    def moved(times, weight):
        method.coreset = tuple(torch.cat([column] * times) for column in once)
        method.kl_weight = weight
        return means(method._fine_tuned()) - means(net)

    free, held, twice = moved(1, 0.0), moved(1, 1e-11), moved(2, 2e-11)
    assert (held - free).norm() > 0.05 * free.norm()
    assert (twice - held).norm() < 1e-2 * (held - free).norm()


def test_a_prediction_in_the_middle_of_a_task_is_fine_tuned_and_keeps_up_with_training():
    """The copy is trained by its own means while the network is in the middle of a step."""
    learner, values = make(coreset_epochs=5, batch_size=ALL, epochs=5, lr=1e-2), []

    def blocks(net):
        return [module for module in net.modules() if isinstance(module, PosteriorBlock)]

    def look():
        tuned = learner.method._fine_tuned()
        assert (means(tuned) - means(learner.network)).abs().sum() > 1
        for copied, block in zip(blocks(tuned), blocks(learner.network), strict=True):
            assert torch.equal(copied.prior.mean, block.mean)
            torch.testing.assert_close(copied.prior.scale, block.scale())
        values.append(learner.nll(0))

    learner.train(0, after_step=look)
    assert all(later < 0.95 * sooner for sooner, later in pairwise(values))


def test_fine_tuning_has_the_schedule_of_training_and_a_rate_of_its_own():
    shares, rates = [], []

    def schedule(share):
        shares.append(share)
        return 1 - share / 2

    def optimizer(parameters, lr):
        made = torch.optim.SGD(parameters, lr=lr)
        made.register_step_post_hook(lambda *_: rates.append(made.param_groups[0]["lr"]))
        return made

    options = {"coreset_size": 8, "coreset_epochs": 4, "coreset_rate": 0.1}
    learner = make(schedule=schedule, optimizer=optimizer, lr=0.2, batch_size=ALL, **options)
    learner.train(0)
    assert shares == [0, 0, 0.25, 0.5, 0.75]
    assert rates == pytest.approx([0.2, 0.02, 0.0175, 0.015, 0.0125])


def test_a_coreset_as_large_as_a_task_is_refused():
    with refuses("coreset_size"):
        make(coreset_size=5000).train(0)
