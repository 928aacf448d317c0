"""Exact heads on a body that goes on learning: its ends, and posteriors that move with features."""

from functools import partial

import pytest
import torch
from failing import refuses
from scenarios import Learner, in_the_middle, network

from vcl_radial.errors import UserError
from vcl_radial.likelihoods import OneHot
from vcl_radial.methods.bayes_linear import BayesLinear, NormalGamma
from vcl_radial.methods.learning_body import LearningBody, linear_change, moved
from vcl_radial.nn import PosteriorSettings, WithHeads, posterior_blocks


def learner(kind=LearningBody, multi_head=False, epochs=2, **settings):
    torch.manual_seed(1)
    net = network(None, multi_head, hidden=(12,))
    return Learner(kind, net, epochs=epochs, lr=1e-2, **settings)


def pulled(weight):
    return {"learner": "l2", "kl_weight": weight}


def learned(d=5, outputs=3, points=200):
    """A posterior, and the features that it has learned."""
    generator = torch.Generator().manual_seed(0)
    phi = torch.randn(points, d, generator=generator, dtype=torch.float64)
    y = torch.randn(points, outputs, generator=generator, dtype=torch.float64)
    prior = NormalGamma.prior(d, 0.7, 1.0, 0.1, outputs=outputs)
    return prior.update(lambda: [(phi, y)]), phi, y


@pytest.mark.parametrize("multi_head", [False, True])
@pytest.mark.parametrize(
    ("settings", "features"),
    [
        ({}, "first-task-body"),
        ({"learner": "none"}, "first-task-body"),
        ({"learner": "none", "from_start": True}, "body"),
    ],
)
def test_an_infinite_pull_is_a_body_that_is_held_bit_by_bit(multi_head, settings, features):
    ours = learner(multi_head=multi_head, propagate=True, **settings).train(0, 1, 2)
    held = learner(BayesLinear, multi_head, features=features).train(0, 1, 2)
    for task in range(3):
        assert torch.equal(ours.predictions(task), held.predictions(task))


def test_a_large_pull_ends_near_the_held_body_and_a_small_one_does_not():
    def body(**settings):
        trained = learner(epochs=5, **settings).train(0)
        before = [w.clone() for w in trained.method.body.body.parameters()]
        trained.train(1)
        after = trained.method.body.body.parameters()
        pairs = zip(after, before, strict=True)
        return sum((w - old).square().sum().item() for w, old in pairs)

    assert body() == 0
    free, weak, strong = body(learner="naive"), body(**pulled(10.0)), body(**pulled(1e5))
    assert free > weak > strong > 0
    assert strong < 0.1 * free


def test_from_the_start_the_first_task_is_pulled_to_the_weights_that_the_network_starts_with():
    start = list(network(None, False, hidden=(12,)).body.parameters())

    def distance(**settings):
        trained = learner(epochs=10, **settings).train(0)
        pairs = zip(trained.method.body.body.parameters(), start, strict=True)
        return sum((w - old).square().sum().item() for w, old in pairs)

    assert distance(**pulled(1e5), from_start=True) < 0.1 * distance(**pulled(1e5))


@pytest.mark.parametrize("multi_head", [False, True])
def test_features_that_stay_leave_all_posteriors_where_they_are(multi_head):
    trained = learner(multi_head=multi_head, **pulled(1.0), propagate=True).train(0)
    (head,) = [m for m in trained.network.modules() if hasattr(m, "sharpness")][:1]
    before = head.posterior
    trained.begin(0)
    with torch.no_grad():
        change = trained.method._change(trained.method.anchor)
    torch.testing.assert_close(change, torch.eye(len(change)).double(), rtol=0, atol=1e-12)
    after = moved(before, change)
    torch.testing.assert_close(after.mean, before.mean, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(after.precision, before.precision, rtol=1e-8, atol=1e-6)


def test_a_linear_invertible_change_of_the_features_leaves_predictions_unchanged():
    posterior, phi, _ = learned()
    W = torch.randn(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    changed = phi @ W.T
    fitted = linear_change(phi.T @ phi, phi.T @ (changed - phi))
    torch.testing.assert_close(fitted, W, rtol=1e-5, atol=1e-5)
    for now, before in zip(
        moved(posterior, fitted).predictive(changed), posterior.predictive(phi), strict=True
    ):
        torch.testing.assert_close(now, before, rtol=1e-4, atol=1e-6)


def test_directions_without_points_stay_as_they_are():
    _, phi, _ = learned()
    phi = phi.clone()
    phi[:, 3:] = 0
    W = torch.eye(5, dtype=torch.float64)
    W[:3, :3] = torch.tensor([[2.0, 1, 0], [0, 1, 1], [0, 0, 3]])
    fitted = linear_change(phi.T @ phi, phi.T @ (phi @ W.T - phi))
    torch.testing.assert_close(fitted, W, rtol=1e-5, atol=1e-5)


def test_a_posterior_that_moved_learns_on_as_if_its_points_had_had_the_features_of_now():
    """But for the prior, which has moved too: it is weak here."""
    W = torch.randn(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    _, phi, y = learned()
    old, new = phi[:120], phi[120:] @ W.T
    weak = NormalGamma.prior(5, 1e3, 1.0, 0.1, outputs=3)
    in_steps = moved(weak.update(lambda: [(old, y[:120])]), W).update(lambda: [(new, y[120:])])
    together = weak.update(lambda: [(phi @ W.T, y)])
    torch.testing.assert_close(in_steps.precision, together.precision, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(in_steps.mean, together.mean, rtol=1e-4, atol=1e-5)


def test_a_change_that_loses_a_direction_leaves_a_posterior_that_predicts():
    posterior, phi, _ = learned()
    W = torch.eye(5, dtype=torch.float64)
    W[4] = 0
    location, scale, _ = moved(posterior, W).predictive(phi @ W.T)
    assert location.isfinite().all()
    assert scale.isfinite().all()


def test_moved_statistics_keep_more_of_the_past_than_stale_ones():
    """Where the body is pulled little, so that its features go far."""

    def accuracy(**settings):
        trained = learner(epochs=10, **pulled(10.0), **settings).train(0, 1)
        hits = trained.predictions(0).argmax(1) == trained.targets(0)
        return float(hits.float().mean())

    assert accuracy(propagate=True) > accuracy() + 0.02


@pytest.mark.parametrize("task", [0, 1])
def test_it_goes_on_in_the_middle_of_a_task(task, tmp_path):
    make = partial(learner, **pulled(100.0), propagate=True)
    whole, again = in_the_middle(make, task, tmp_path / "state")
    assert torch.equal(whole.predictions(task), again.predictions(task))


POSTERIORS = {
    "gaussian": {},
    "radial": {},
    "low-rank": {"rank": 2},
    "radial-low-rank": {"rank": 2},
}


def variational(family, **settings):
    posterior = PosteriorSettings(family, initial_noise=1e-2, **POSTERIORS[family])
    torch.manual_seed(1)
    return Learner(
        LearningBody,
        network(posterior, False, hidden=(12,)),
        epochs=2,
        lr=1e-2,
        learner="vcl",
        **settings,
    )


@pytest.mark.parametrize("family", POSTERIORS)
def test_features_are_those_of_weights_without_noise(family):
    trained = variational(family).train(0, 1)
    x, network = trained.points(1).x, trained.method.body.body
    with torch.no_grad():
        phi = trained.network.phi(x)[:, :-1]
        assert not torch.equal(phi, network(x))
        for block in posterior_blocks(network, []):
            block.rho.fill_(-40.0)
            if hasattr(block, "factor"):
                block.factor.zero_()
        torch.testing.assert_close(network(x), phi, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", POSTERIORS)
def test_the_posterior_of_the_body_is_carried_as_the_next_prior(family):
    trained = variational(family).train(0)
    blocks = list(posterior_blocks(trained.method._trainer.network, [0]))
    assert blocks
    for block in blocks:
        assert torch.equal(block.prior_mean, block.mean)
        torch.testing.assert_close(block.kl(), torch.zeros(()), rtol=0, atol=1e-3)
    trained.begin(1)
    with torch.no_grad():
        assert abs(float(trained.method.penalty())) < 1e-2


def test_from_the_start_the_first_prior_of_vcl_is_where_its_posterior_starts():
    def distance(**settings):
        trained = variational("gaussian", **settings)
        blocks = list(posterior_blocks(trained.method.body.body, []))
        start = [block.mean.detach().clone() for block in blocks]
        trained.begin(0)
        with torch.no_grad():
            kl = sum(float(block.kl()) for block in blocks)
        assert (abs(kl) < 1e-4) == bool(settings)
        trained.train(0)
        pairs = zip(start, blocks, strict=True)
        return sum((mean - block.mean).square().sum().item() for mean, block in pairs)

    assert distance(from_start=True) < 0.3 * distance()


@pytest.mark.parametrize("name", ["laplace_kronecker", "ewc"])
def test_a_strong_penalty_of_the_learner_holds_the_body(name):
    def distance(weight):
        trained = learner(epochs=5, learner=name, kl_weight=weight).train(0)
        before = [w.clone() for w in trained.method.body.body.parameters()]
        trained.train(1)
        after = trained.method.body.body.parameters()
        pairs = zip(after, before, strict=True)
        return sum((w - old).square().sum().item() for w, old in pairs)

    assert distance(1e4) < 0.7 * distance(1e-4)


@pytest.mark.parametrize("name", ["vcl", "laplace_kronecker", "si", "replay"])
def test_with_a_learner_it_goes_on_in_the_middle_of_a_task(name, tmp_path):
    make = partial(learner, learner=name) if name != "vcl" else partial(variational, "radial")
    whole, again = in_the_middle(make, 1, tmp_path / "state")
    assert torch.equal(whole.predictions(1), again.predictions(1))


@pytest.mark.parametrize(
    "name", ["joint", "bayes_linear", "deep_ensemble", "coreset_vcl", "frozen_body"]
)
def test_a_learner_that_trains_no_single_network_task_by_task_is_refused(name):
    with pytest.raises(UserError, match=rf"^options\.learner = '{name}' "):
        learner(learner=name)


@pytest.mark.parametrize("name", ["none", "l2", "laplace_kronecker"])
def test_labels_with_noise_train_the_body_and_leave_the_heads_their_probabilities(name):
    softmax = learner(learner=name).train(0, 1)
    labels = learner(learner=name, likelihood=OneHot(variance=0.2, scale=5.0)).train(0, 1)
    assert isinstance(labels.method.make_trainer(network(None, False)).likelihood, OneHot)
    moved = [next(of.method.body.body.parameters()) for of in (labels, softmax)]
    assert not torch.equal(*moved)
    x = labels.stream.inputs(0, "test")
    torch.testing.assert_close(labels.predictions(0), labels.network(x).log_softmax(-1))


def test_a_learner_that_is_not_there_is_said_with_the_nearest():
    with refuses("options.learner = 'ewk'", "'ewc'"):
        learner(learner="ewk")


def test_a_posterior_without_a_learner_is_refused():
    with refuses("posterior"):
        LearningBody(network("radial", False, hidden=(12,)))


def test_a_learner_that_cannot_hold_the_first_task_is_refused():
    with refuses("options.from_start"):
        learner(learner="ewc", from_start=True)


def test_the_averages_of_norms_move_with_every_task():
    body = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU()
    )
    net = WithHeads(body, (64,), 10, multi_head=False, posterior=None)
    trained = Learner(LearningBody, net, learner="l2").train(0)
    averages = trained.method.body.body.body[2].running_mean
    after = averages.clone()
    trained.begin(1)
    trained.loop.learn(trained.batches(), 0.0)
    assert not torch.equal(averages, after)


def test_in_the_middle_of_a_task_probabilities_are_those_of_labels_with_noise():
    labels = OneHot(variance=0.1, scale=5.0)
    trained = learner(learner="l2", likelihood=labels)
    trained.begin(0)
    trained.loop.learn(trained.batches(), 0.0)
    x, body = trained.stream.inputs(0, "test"), trained.method.body
    expected = labels.logits(body.outputs(x)).log_softmax(-1)
    torch.testing.assert_close(trained.predictions(0), expected)
