"""BAdam, VADAM, VOGN and IVON on digits: what they carry, draw and predict by."""

import sys

import pytest
import torch
from failing import refuses
from scenarios import ADAM, ALL, Learner, network
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adagrad, Adam, RMSprop

DRAWING = ("vadam", "vogn", "ivon")
every = pytest.mark.parametrize("name", ["badam", *DRAWING])


def make(name, net=None, lr=None, **settings):
    # The step of VOGN and IVON is in units of the curvature.
    lr = lr or (0.1 if name in {"vogn", "ivon"} else 1e-2)
    return Learner(name, network(None) if net is None else net, lr=lr, **settings)


def posteriors(learner, *heads):
    return learner.method.posterior.posteriors(heads)


@every
def test_the_posterior_becomes_the_prior_and_that_of_other_heads_rests(name):
    learner = make(name, prior_scale=0.1).train(0)
    for q in posteriors(learner, 0).values():
        assert torch.equal(q.prior_mean, q.mean)
        assert torch.equal(q.prior_precision, q.precision)
        assert (q.precision >= 99.9).all()
    assert learner.method.penalty() == 0
    learner.adapt(2)
    fields = "prior_mean", "prior_precision", "precision"

    def held():
        heads = {n: q for n, q in posteriors(learner, 0, 2).items() if "head" in n}
        return {(n, field): getattr(q, field).clone() for n, q in heads.items() for field in fields}

    before = held()
    learner.train(1)
    after = held()
    assert all(torch.equal(after[key], value) for key, value in before.items())
    fresh = [value for (n, field), value in after.items() if ".2." in n and field == "prior_mean"]
    assert fresh
    assert not any(value.any() for value in fresh)


@every
def test_the_larger_the_carried_precision_the_less_the_body_moves(name, multi_head):
    distances = []
    for precision in (1.0, 1e8):
        learner = make(name, network(None, multi_head), epochs=3).train(0)
        body = {n: q for n, q in posteriors(learner).items() if "body" in n}
        old = {n: q.mean.detach().clone() for n, q in body.items()}
        for q in body.values():
            q.prior_precision = torch.full_like(q.mean, precision)
        learner.train(1)
        distances.append(max((q.mean - old[n]).abs().max().item() for n, q in body.items()))
    assert distances[1] < 0.05 * distances[0]


@pytest.mark.parametrize("name", DRAWING)
def test_the_loss_is_the_negative_elbo_over_n(name):
    """With a KL that has no gradient of its own: the optimiser has it."""
    learner, without = make(name), make(name, loss_value=False)
    full, nll = learner.standing_loss(0), without.standing_loss(0)
    kl = learner.method.posterior.kl([0])
    assert kl > 0
    assert not kl.requires_grad
    torch.testing.assert_close(full - nll, kl / len(learner.points(0).y), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "left"), [("vadam", 1e-4), ("vogn", 1e-4), ("ivon", 1e-3)])
@pytest.mark.parametrize("epochs", [1, 10])
def test_weights_that_the_data_do_not_touch_carry_their_prior(epochs, name, left):
    """And next to nothing of the curvature that a task starts with, task after task."""
    net = network(None)
    with torch.no_grad():
        net.body[0].bias[0] = -1e3  # this unit never answers
    settings = {"epochs": epochs, "prior_scale": 10.0, "initial_noise": 0.03}
    if name == "ivon":  # of whose first curvature nine tenths are left in the optimiser
        settings |= {"beta2": 0.999, "debias": True}
    learner = make(name, net, lr=1e-6, **settings)
    for task in range(2):
        learner.train(task)
        precision = posteriors(learner)["body.0.weight"].prior_precision
        assert (precision[0] >= 0.0099).all()
        assert (precision[0] < 0.01 + (task + 1) * 1.01 * left / 0.03**2).all()
        assert precision[1:].mean() > 1


def test_debiased_ivon_predicts_by_its_optimisers_posterior():
    """What it carries would draw weights of which little is known with the prior's noise."""
    learner = make("ivon", debias=True).train(0)
    (group,) = learner.optimizer.param_groups
    precision = torch.cat([q.precision.flatten() for q in posteriors(learner, 0).values()])
    assert torch.equal(precision, group["ess"] * (group["hess"] + group["weight_decay"]))
    assert (precision > 0.5 / 0.03**2).all()


def test_of_no_step_debiased_ivon_carries_its_prior():
    learner = make("ivon", epochs=0, debias=True).train(0)
    assert all((q.prior_precision == 1).all() for q in posteriors(learner, 0).values())


@every
@pytest.mark.parametrize("at_means", [True, False])
def test_the_means_predict_where_this_is_asked_for(name, at_means):
    learner = make(name, predict_at_means=at_means, batch_size=ALL).train(0)
    assert learner.method.eval_samples == (1 if at_means else 5)
    inner = learner.method.posterior.network.eval()
    with torch.no_grad():
        at = inner(learner.stream.inputs(0, "test"), 0).log_softmax(-1)
    assert torch.allclose(learner.predictions(0), at, atol=1e-6) is at_means


def test_several_draws_in_a_step_quieten_ivons_gradient():
    def spread(samples):
        settings = {"batch_size": ALL, "initial_noise": 0.1, "epochs": 40}
        learner, gradients = make("ivon", train_samples=samples, **settings), []

        def step(optimizer):
            gradients.append(optimizer.state["avg_grad"].clone())
            optimizer._reset_samples()

        learner.method.step = step
        learner.train(0)
        return torch.stack(gradients).var(0).mean()

    assert (spread(4) / spread(1)).item() == pytest.approx(1 / 4, rel=0.3)


def test_ivon_steps_as_its_package_does_where_one_weight_decay_serves():
    """In the first task: its prior is the same for every weight, and its mean is 0."""
    package, settings = pytest.importorskip("ivon"), {"batch_size": ALL, "epochs": 5, "lr": 0.1}
    ours = make("ivon", initial_noise=0.5, beta2=0.9, **settings).train(0)
    x, y, _ = ours.points(0)
    net = network(None)
    net.head.adapt([0])
    start = net.body[0].weight.detach().clone()
    theirs = package.IVON(
        *([*net.parameters()], 0.1, len(y)),
        hess_init=4 / len(y),
        weight_decay=1 / len(y),
        beta2=0.9,
    )
    torch.manual_seed(0)
    for _ in range(5):
        torch.randperm(len(y))  # as the batches are shuffled
        with theirs.sampled_params(train=True):
            theirs.zero_grad()
            cross_entropy(net(x, 0), y).backward()
        theirs.step()
    assert not torch.allclose(start, net.body[0].weight, atol=0.01)
    ends = torch.cat([weight.detach().flatten() for weight in net.parameters()])
    torch.testing.assert_close(ours.weights(), ends, rtol=1e-3, atol=1e-4)


def test_ivon_names_the_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ivon", None)
    with refuses("vcl-radial[ivon]"):
        make("ivon")


@pytest.mark.parametrize("name", DRAWING)
def test_a_prior_that_counts_nothing_is_named(name):
    with refuses("kl_weight"):
        make(name, kl_weight=0.0).train(0)


def test_badam_wants_an_optimiser_with_a_second_moment():
    with refuses("optimizer"):
        make("badam", optimizer=SGD).train(0)


def test_after_one_step_on_all_points_every_second_moment_is_the_squared_gradient():
    """v = g^2, so that BAdam has one posterior by Adam, RMSprop and AdaGrad: N |g| + prior."""
    settings = {"beta2": 0.9, "prior_scale": 0.5, "batch_size": ALL, "epochs": 1}
    precisions = []
    for optimizer in (Adam, RMSprop, Adagrad):
        learner = make("badam", optimizer=optimizer, **settings).train(0)
        precisions.append(posteriors(learner)["body.0.weight"].precision)
    assert (precisions[0] > 4).any()
    for precision in precisions[1:]:
        torch.testing.assert_close(precision, precisions[0])


def test_adagrads_second_moment_is_the_mean_of_all_squared_gradients():
    settings = {"prior_scale": 0.5, "batch_size": 16, "epochs": 2, "optimizer": Adagrad}
    learner = make("badam", **settings).train(0)
    q = posteriors(learner)["body.0.weight"]
    moments = learner.optimizer.state[q.mean]
    root = (moments["sum"] / float(moments["step"])).sqrt()
    torch.testing.assert_close(q.precision, len(learner.points(0).y) * root + 4)


@pytest.mark.parametrize("amsgrad", [True, False])
def test_badam_reads_the_moment_that_adam_steps_by(amsgrad):
    """With AMSGrad that is the largest one so far."""

    def optimizer(parameters, lr):
        return ADAM(parameters, lr=lr, amsgrad=amsgrad)

    settings = {"beta2": 0.9, "prior_scale": 0.5, "batch_size": 16, "epochs": 3}
    learner = make("badam", optimizer=optimizer, **settings).train(0)
    q = posteriors(learner)["body.0.weight"]
    moments = learner.optimizer.state[q.mean]
    assert ("max_exp_avg_sq" in moments) is amsgrad
    square = moments["max_exp_avg_sq" if amsgrad else "exp_avg_sq"]
    root = (square / (1 - 0.9 ** float(moments["step"]))).sqrt()
    torch.testing.assert_close(q.precision, len(learner.points(0).y) * root + 4)
    if amsgrad:
        assert (square > moments["exp_avg_sq"]).any()


def test_badam_that_leaves_the_prior_out_of_its_loss_multiplies_it_in_afterwards():
    """The posterior is the product of the prior and N(w, 1 / (n sqrt(v))) at Adam's end w."""
    options = {"prior_in_loss": False, "kl_weight": 0.7, "beta2": 0.9}
    learner, ends = make("badam", prior_scale=0.1, **options).train(0), {}
    body = posteriors(learner)
    priors = {n: (q.prior_mean.clone(), q.prior_precision.clone()) for n, q in body.items()}
    learner.train(1, after_step=lambda: ends.update({n: q.mean.clone() for n, q in body.items()}))
    for name, q in body.items():
        moments, (mean, precision) = learner.optimizer.state[q.mean], priors[name]
        root = (moments["exp_avg_sq"] / (1 - 0.9 ** float(moments["step"]))).sqrt()
        data = len(learner.points(1).y) / 0.7 * root
        torch.testing.assert_close(q.prior_precision, precision + data)
        product = (precision * mean + data * ends[name]) / (precision + data)
        torch.testing.assert_close(q.prior_mean, product)
        assert not torch.equal(q.prior_mean, ends[name])


@pytest.mark.parametrize("at_means", [True, False])
def test_without_accumulation_badam_draws_what_nothing_has_moved_from_the_first_prior(at_means):
    """Eq. 12 gives the inputs of a unit that is dead the precision 0."""
    net = network(None)
    torch.nn.init.constant_(net.body[0].bias[3:4], -100.0)
    options = {"accumulate": False, "kl_weight": 0.0, "predict_at_means": at_means}
    learner = make("badam", net, prior_scale=0.5, **options).train(0)
    q = posteriors(learner, 0)
    assert (q["body.0.weight"].precision[3] == (0 if at_means else 4)).all()
    if not at_means:
        assert all((weights.precision >= 4).all() for weights in q.values())
    assert learner.predictions(0).isfinite().all()
