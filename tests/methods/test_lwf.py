"""Learning without forgetting: its distillation, and of which heads and classes it is."""

import copy

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import ALL, Learner, network
from torch.distributions import Categorical
from torch.nn.functional import cross_entropy

from vcl_radial.methods.lwf import LwF, distillation
from vcl_radial.nn import MLP


@settings(max_examples=30)
@given(temperature=st.floats(0.5, 8), seed=st.integers(0, 10_000))
def test_distillation_is_least_where_the_networks_agree_and_there_the_entropy(temperature, seed):
    torch.manual_seed(seed)
    before = 3 * torch.randn(4, 5, dtype=torch.float64)
    entropy = Categorical(logits=before / temperature).entropy().mean()
    # A shift of all logits of a point is the same prediction.
    now = (before + torch.randn(4, 1)).requires_grad_()
    agreeing = distillation(now, before, temperature)
    torch.testing.assert_close(agreeing, entropy)
    (gradient,) = torch.autograd.grad(agreeing, now)
    torch.testing.assert_close(gradient, torch.zeros_like(now), atol=1e-12, rtol=0)
    other = distillation(before + 0.1 * torch.randn(4, 5), before, temperature)
    assert other > entropy


def test_a_task_starts_at_its_nll_and_the_entropies_of_what_was_trained(multi_head):
    """Of the old heads, or with one head for all tasks of the classes trained so far."""
    net = network(None, multi_head)
    lwf = Learner("lwf", net, strength=0.7, temperature=3.0, batch_size=100).train(0, 1)
    assert lwf.method.classes == ({0: [0, 1], 1: [0, 1]} if multi_head else {0: [0, 1, 2, 3]})
    loss = lwf.standing_loss(2, ALL)
    x, y, label = lwf.points(2)
    old = [0, 1] if multi_head else [0]
    with torch.no_grad():
        expected = cross_entropy(net(x, label), y)
        for head in old:
            logits = net(x, head)[:, lwf.method.classes[head]]
            expected += 0.7 * Categorical(logits=logits / 3.0).entropy().mean()
    torch.testing.assert_close(loss, expected)


def test_distillation_is_the_mean_over_weight_samples():
    """The loss under three draws is the mean of the losses with the logits of each alone."""
    torch.manual_seed(0)
    net = MLP(64, 2, hidden=(32,), posterior=None, dropout=0.3)
    lwf = Learner("lwf", net, train_samples=3, batch_size=ALL)
    lwf.train(0)
    lwf.begin(1)
    batch = lwf.whole
    lwf.network.train()
    outputs = lwf.method.outputs(batch)
    logits = lwf.method._logits
    assert len(logits) == len(outputs) == 3
    losses = []
    for draws in (logits, *([draw] for draw in logits)):
        lwf.method._logits = draws
        torch.manual_seed(5)  # the old network drops too
        losses.append(lwf.method.loss(batch, outputs))
    total, *alone = losses
    torch.testing.assert_close(total, torch.stack(alone).mean())
    assert torch.stack(alone).std() > 0


def test_distilled_heads_forget_less():
    drift = []
    for strength in (0.0, 1.0):
        lwf = Learner(
            "lwf", network(None, hidden=(16,)), epochs=5, lr=3e-3, strength=strength
        ).train(0)
        before = lwf.predictions(0).exp()
        lwf.train(1, 2)
        drift.append((lwf.predictions(0).exp() - before).abs().mean())
    assert drift[1] < 0.7 * drift[0]


def test_the_old_network_answers_as_in_evaluation():
    """Dropout in what it says would be noise in the targets."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(64, 16),
        torch.nn.BatchNorm1d(16),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(16, 10),
    )
    lwf = Learner(LwF, net).train(0)
    before, answers = copy.deepcopy(net).eval(), []

    def look():
        x = lwf.seen[-1]
        with torch.no_grad():
            answers.append(torch.equal(lwf.method._old(x), before(x)) and net.training)

    lwf.train(1, after_step=look)
    assert answers
    assert all(answers)
