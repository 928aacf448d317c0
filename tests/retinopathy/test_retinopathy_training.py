"""Training: resumed is the same, tweaks do what they say, and nothing else draws from chance."""

import io
import math

import numpy as np
import pytest
import retinopathy_helpers
import torch
from failing import refuses
from retinopathy_helpers import Training, recipe
from scipy import stats
from torch.nn.utils import parameters_to_vector
from torch.optim import SGD, Adam

from vcl_radial import native
from vcl_radial.errors import Diverged
from vcl_radial.nn import ClosedFormGradients, kl_divergence, variational_weights
from vcl_radial.optimizers.schedules import one_cycle
from vcl_radial.tracks.retinopathy.networks import (
    make_network,
    make_optimizer,
    truncated,
    truncated_normal,
)
from vcl_radial.tracks.retinopathy.prediction import predict, referable_log_probabilities
from vcl_radial.tracks.retinopathy.training import method_of, trained_method

SIZE = 16  # pixels along an edge of the photographs that the helpers draw

ENSEMBLE = {"strategy": "deep_ensemble", "options": {"members": 2}}
DROPOUT = {"strategy": "mc_dropout", "posterior": "none", "options": {"rate": 0.3}}
FIRST = {"strategy": "ml_init_vcl", "options": {"ml_epochs": 1}}
RECIPES = {
    "two samples": {"posterior": "radial", "train_samples": 2, "optimizer": "amsgrad"},
    "tweaked": {**FIRST, "posterior": "gaussian", "initial_noise": 1e-3},
    "truncated": {"posterior": "gaussian", "truncation": 1.0, "learning_rate_decay": 0.9},
    "dropout": {**DROPOUT, "optimizer": "sgd"},
    "ensemble": ENSEMBLE,
    "vadam": {"posterior": "none", "strategy": "vadam", "initial_noise": 1e-2},
}
"""What a loop has to store: each optimiser, a warm-up, noise, members, a precision."""


def numbers(training):
    history = [{k: v for k, v in line.items() if k != "seconds"} for line in training.history]
    return history, training.trainer.best_epoch, training.trainer.best_score


def tensors(state, prefix=""):
    """All tensors of a state, and those of the states inside it, by name."""
    by_name = {}
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            by_name[f"{prefix}{name}"] = value
        elif isinstance(value, dict):
            by_name |= tensors(value, f"{prefix}{name}.")
    return by_name


def saved_and_loaded(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)


@pytest.mark.parametrize("keys", RECIPES.values(), ids=RECIPES)
def test_training_that_was_left_after_any_epoch_ends_bit_for_bit_the_same(prepared, keys):
    whole = Training(recipe(**keys), prepared, seed=1).run()
    state = None
    for _ in range(3):
        torch.rand(7)  # what was drawn before must not matter
        part = Training(recipe(**keys), prepared, seed=1)
        if state is not None:
            part.trainer.load_state_dict(state)
        part.run_epoch()
        state = saved_and_loaded(part.trainer.state_dict())
    assert numbers(part) == numbers(whole)
    for resumed, expected in (
        (part.network.state_dict(), whole.network.state_dict()),
        (part.carried(), whole.carried()),
    ):
        assert list(tensors(resumed)) == list(tensors(expected))
        assert all(torch.equal(v, tensors(expected)[k]) for k, v in tensors(resumed).items())


def test_training_leaves_the_global_generator_alone(prepared):
    before = torch.get_rng_state()
    Training(recipe(), prepared, seed=0).run_epoch()
    assert torch.equal(before, torch.get_rng_state())


def test_every_epoch_has_noise_of_its_own(prepared):
    seeds = []
    training = Training(recipe(), prepared, 0)
    for _ in range(2):
        training.run_epoch(lambda: seeds.append(torch.initial_seed()))
    assert len(seeds) == 2 * training.epoch_steps
    assert len(set(seeds)) == 2


def test_seeds_start_apart(prepared):
    starts = [
        parameters_to_vector(Training(recipe(), prepared, seed).network.parameters())
        for seed in (0, 1, 0)
    ]
    assert torch.equal(starts[0], starts[2])
    assert not torch.equal(starts[0], starts[1])


def test_a_member_of_an_ensemble_learns_as_if_it_were_alone(prepared):
    quiet = {"initial_rho": -30.0, "optimizer": "sgd"}
    ensemble = Training(recipe(**ENSEMBLE, **quiet), prepared, seed=0)
    alone = Training(recipe(**quiet), prepared, seed=0)
    member = ensemble.method.members[1]
    alone.network.load_state_dict(member.state_dict())
    for training in (ensemble, alone):
        training.run_epoch()
    pairs = (parameters_to_vector(n.parameters()) for n in (member, alone.network))
    torch.testing.assert_close(*pairs, rtol=1e-3, atol=1e-4)


def test_an_ensemble_of_points_asks_each_member_once(prepared):
    training = Training(recipe(**ENSEMBLE, posterior="none", batch_size=16), prepared, seed=0)
    assert len(prepared.split.validation) <= 16
    calls = []
    for member in training.method.members:
        member.register_forward_hook(
            lambda module, *_: None if module.training else calls.append(module)
        )
    training.run_epoch()
    assert calls == list(training.method.members)


@pytest.mark.parametrize(
    "keys", [{"posterior": "radial"}, RECIPES["tweaked"]], ids=["plain", "tweaked"]
)
def test_what_brightness_tells_is_learnt(keys):
    keys = {**keys, "channels": 4, "epochs": 10, "kl_weight": 0.0}
    training = Training(recipe(**keys), retinopathy_helpers.prepared(40), seed=0).run()
    assert training.trainer.best_score > 95


def test_the_loss_is_the_likelihood_and_the_kl_per_photograph(prepared):
    frozen = {"learning_rate": 1e-12, "posterior": "gaussian", "kl_weight": 0.5}
    line = Training(recipe(**frozen), prepared, seed=0).run_epoch()
    points = len(prepared.split.train)
    assert line["loss"] == pytest.approx(line["nll"] + 0.5 * line["kl"] / points, rel=1e-6)
    without = Training(recipe(**{**frozen, "kl_weight": 0.0}), prepared, seed=0).run_epoch()
    assert without["loss"] == without["nll"] == pytest.approx(line["nll"], rel=1e-6)
    two = Training(recipe(**ENSEMBLE, posterior="none"), prepared, seed=0).run_epoch()
    assert two["loss"] == pytest.approx(2 * two["nll"], rel=1e-6)


@pytest.mark.parametrize("start", [{"initial_noise": 0.07}, {"initial_rho": -2.0}], ids=str)
def test_the_networks_posterior_is_the_recipes(start):
    keys = {"posterior": "radial", "grouping": "unit", "prior_scale": 0.3, "channels": 4, **start}
    network = make_network(recipe(**{"initial_noise": None, **keys}), SIZE)
    (block,) = next(variational_weights(network, [])).posterior_blocks()
    assert len(block.mean) == 4
    assert block.prior_scale.unique().tolist() == pytest.approx([0.3])
    if "initial_noise" in start:
        torch.testing.assert_close(block.weight_noise(), torch.full_like(block.mean, 0.07))
    else:
        scale = torch.full_like(block.mean, math.log1p(math.exp(-2)))
        torch.testing.assert_close(block.scale(), scale)


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [
        ("sgd", SGD, {"lr": 0.02, "momentum": 0.9, "nesterov": True}),
        ("adam", Adam, {"lr": 0.02, "amsgrad": False}),
        ("amsgrad", Adam, {"lr": 0.02, "amsgrad": True}),
    ],
)
def test_the_optimiser_is_the_recipes(name, kind, settings):
    chosen = recipe(optimizer=name, learning_rate=0.02, channels=1)
    (group,) = make_optimizer(chosen, network := make_network(chosen, SIZE)).param_groups
    assert type(make_optimizer(chosen, network)) is kind
    assert {key: group[key] for key in settings} == settings
    assert len(group["params"]) == len(list(network.parameters()))


@pytest.mark.parametrize(
    ("posterior", "optimizer", "first"),
    [("radial", "adam", FIRST), ("gaussian", "amsgrad", {}), ("gaussian", "sgd", FIRST)],
)
def test_the_closed_form_takes_the_steps_of_autograd(
    prepared, monkeypatch, posterior, optimizer, first
):
    """The compiled pass has noise of its own; for once it is to draw what PyTorch draws."""
    monkeypatch.setattr(native, "standard_normal", lambda out: out.normal_())
    keys = {"posterior": posterior, "optimizer": optimizer, "grouping": "unit", "train_samples": 2}
    ends = []
    for closed in (True, False):
        if not closed:
            monkeypatch.setattr(ClosedFormGradients, "serves", lambda network: False)
        training = Training(recipe(**keys, **first, initial_rho=-4.0), prepared, seed=0)
        lines = [training.run_epoch() for _ in range(2)]
        training.trainer.best = None
        training.carried()
        assert all(m.sampler is None for m in variational_weights(training.network, []))
        ends.append((parameters_to_vector(training.network.parameters()), lines[-1]["loss"]))
    torch.testing.assert_close(ends[0][0], ends[1][0], rtol=1e-3, atol=1e-5)
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-4)


def test_more_samples_leave_the_loss_and_its_gradient(prepared):
    """Without noise every draw is the same: a mean over them is that of one."""
    lines, ends = [], []
    for count in (1, 3):
        keys = {"posterior": "gaussian", "initial_rho": -30.0, "optimizer": "sgd"}
        training = Training(recipe(**keys, train_samples=count), prepared, seed=0)
        lines.append(training.run_epoch())
        ends.append(parameters_to_vector(training.network.parameters()))
    assert lines[0]["nll"] == pytest.approx(lines[1]["nll"], rel=1e-5)
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


def test_the_kl_pulls_towards_the_prior(prepared):
    kls = []
    for weight in (0.0, 1.0):
        training = Training(recipe(posterior="gaussian", kl_weight=weight), prepared, seed=0)
        kls.append(training.run_epoch()["kl"])
    assert kls[1] < kls[0]


def test_epochs_before_the_first_one_move_the_means_and_nothing_else(prepared):
    start = {"strategy": "ml_init_vcl", "options": {"ml_epochs": 2}}
    training = Training(recipe(**start, posterior="gaussian", initial_rho=-3.0), prepared, seed=0)
    before = {k: v.clone() for k, v in tensors(training.network.state_dict()).items()}
    moved = []

    def look():
        now = tensors(training.network.state_dict())
        changed = {k.rsplit(".", 1)[-1] for k in now if not torch.equal(now[k], before[k])}
        moved.append(changed - {"running_mean", "running_var", "num_batches_tracked"})

    line = training.run_epoch(look)
    assert line["epoch"] == training.trainer.best_epoch == 1
    ahead, steps = 2 * training.epoch_steps, training.epoch_steps
    # While the means are trained the scales are put aside, and come back as they were.
    assert len(moved) == ahead + steps
    assert moved[-1] == {"mean", "rho"}
    quiet = {"epochs": 1, "kl_weight": 0.0, "learning_rate": 1e-30}
    still = Training(recipe(**start, **quiet, posterior="gaussian"), prepared, seed=0)
    rhos = {k: v.clone() for k, v in still.network.state_dict().items() if k.endswith("rho")}
    still.run_epoch()
    assert all(torch.equal(still.network.state_dict()[k], rho) for k, rho in rhos.items())


def test_truncated_noise_has_the_truncated_normal_distribution():
    torch.manual_seed(0)
    for threshold in (0.5, 2.0):
        noise = truncated_normal(torch.empty(20_000), threshold)
        assert noise.abs().max() <= threshold
        law = stats.truncnorm(-threshold, threshold)
        assert stats.kstest(noise.numpy(), law.cdf).pvalue > 0.01
        assert noise.var().item() == pytest.approx(law.var(), rel=0.03)
    assert truncated_normal(torch.empty(100_000), 8.0).isfinite().all()


def test_truncation_is_for_training_and_leaves_kl_and_prediction_alone():
    torch.manual_seed(0)
    network = make_network(recipe(posterior="gaussian", initial_noise=0.5), SIZE)
    layer = network.head.output.weights
    kl = kl_divergence(network, [])
    with truncated(network, 0.1):
        for _ in range(20):
            weight, _ = layer.sample()
            assert ((weight - layer.mean()[0]).abs() <= 0.05 + 1e-6).all()
        assert torch.equal(kl, kl_divergence(network, []))
        with torch.no_grad():
            drawn = torch.stack([layer.sample()[0] for _ in range(50)])
    assert (drawn - layer.mean()[0]).std().item() == pytest.approx(0.5, rel=0.1)
    assert layer.sampler is None


def test_the_best_epoch_is_kept_and_patience_ends(prepared):
    keys = {"epochs": 50, "patience": 2, "learning_rate": 1e-9, "posterior": "none"}
    training = Training(recipe(**keys), prepared, seed=0).run()
    aucs = [line["validation_auc"] for line in training.history]
    best_epoch = training.trainer.best_epoch
    assert best_epoch == 1 + int(np.argmax(aucs))
    assert len(training.history) == best_epoch + 2
    last = Training(recipe(select="last", posterior="none"), prepared, seed=0)
    last.run_epoch()
    assert last.trainer.best is None


def test_what_is_carried_of_the_best_epoch_is_all_of_that_epoch(prepared):
    """BAdam reads its precision off the optimiser, whose moments go on after the best epoch."""
    keys = {"strategy": "badam", "posterior": "none", "optimizer": "adam"}
    best = Training(recipe(**keys, epochs=3), prepared, seed=0)
    best.run_epoch()
    best.trainer.best_score = 200.0  # none is better than the first
    best.run()
    short = Training(recipe(**keys, epochs=3), prepared, seed=0)
    short.run_epoch()
    short.trainer.best = None
    for name, value in short.carried().items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(best.carried()[name], value, msg=name)


def rates_of(training):
    """The learning rate of every step."""
    rates = []

    def note():
        rates.append(training.trainer.loop.optimizer.param_groups[0]["lr"])

    while not training.finished:
        training.run_epoch(note)
    return rates


def test_the_learning_rate_decays_epoch_by_epoch(prepared):
    keys = {"learning_rate": 0.01, "learning_rate_decay": 0.5, "epochs": 3}
    training = Training(recipe(**keys), prepared, seed=0)
    assert rates_of(training)[:: training.epoch_steps] == [0.01, 0.005, 0.0025]


def test_the_learning_rate_follows_the_schedule_step_by_step(prepared):
    keys = {"learning_rate": 0.01, "schedule": "one-cycle", "epochs": 2}
    training = Training(recipe(**keys), prepared, seed=0)
    count = 2 * training.epoch_steps
    expected = [0.01 * one_cycle(step / count) for step in range(count)]
    assert rates_of(training) == pytest.approx(expected)


def test_of_levels_the_probability_of_referable_disease_is_the_sum_from_two_on():
    torch.manual_seed(0)
    logits = torch.randn(3, 4, 5)
    expected = logits.softmax(-1)[..., 2:].sum(-1)
    classes = referable_log_probabilities(logits.log_softmax(-1)).exp()
    torch.testing.assert_close(classes[..., 1], expected)
    torch.testing.assert_close(classes.sum(-1), torch.ones(3, 4))


@pytest.mark.parametrize("network", ["resnet", "vgg", "convnet"])
def test_every_network_learns_from_levels_what_brightness_shows(network):
    keys = {"network": network, "targets": "levels", "epochs": 6, "kl_weight": 0.0}
    training = Training(recipe(**keys, channels=4), retinopathy_helpers.prepared(40), seed=0).run()
    assert training.network(torch.zeros(2, 3, 16, 16)).shape == (2, 5)
    assert training.trainer.best_score > 95


def test_a_loss_that_is_no_number_is_said(prepared):
    training = Training(recipe(learning_rate=1e30, optimizer="sgd"), prepared, seed=0)
    with refuses("in epoch 1 of drawn", "learning_rate", kind=Diverged):
        training.run_epoch()


# Prediction


def draws_of(prepared, rows, batch=128, **keys):
    torch.manual_seed(0)
    method = method_of(recipe(**keys), SIZE)
    settings = {"normalisation": prepared.normalisation, "batch_size": batch}
    log_draws = predict(method, prepared.data, rows, samples=3, seed=5, **settings)
    return method, log_draws


def test_predictions_are_distributions_that_follow_from_the_seed(prepared):
    rows = prepared.split.test
    _, log_draws = draws_of(prepared, rows, initial_rho=0.0)
    assert log_draws.shape == (3, len(rows), 2)
    torch.testing.assert_close(log_draws.exp().sum(-1), torch.ones(3, len(rows)))
    assert not torch.equal(log_draws[0], log_draws[1])
    _, in_parts = draws_of(prepared, rows, batch=5, initial_rho=0.0)
    torch.testing.assert_close(log_draws, in_parts)
    _, some = draws_of(prepared, rows[::3], initial_rho=0.0)
    torch.testing.assert_close(log_draws[:, ::3], some)


def test_point_estimates_say_the_same_in_every_draw_and_dropout_does_not(prepared):
    _, points = draws_of(prepared, prepared.split.test, posterior="none")
    assert torch.equal(points[0], points[2])
    _, dropped = draws_of(prepared, prepared.split.test, **DROPOUT)
    assert not torch.equal(dropped[0], dropped[2])


def test_a_stored_state_predicts_as_the_method_did(prepared):
    method, log_draws = draws_of(prepared, prepared.split.test)
    again = trained_method(recipe(), SIZE, saved_and_loaded(method.state_dict()), "cpu")
    same = predict(
        again,
        prepared.data,
        prepared.split.test,
        normalisation=prepared.normalisation,
        samples=3,
        seed=5,
    )
    assert torch.equal(log_draws, same)


def test_no_prediction_has_a_larger_batch_than_training(prepared):
    training, sizes = Training(recipe(batch_size=4), prepared, seed=0), []
    training.network.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    training.run_epoch()
    assert max(sizes) == 4


def test_batches_larger_than_the_data_are_refused(prepared):
    with refuses("batch_size = 5000"):
        Training(recipe(batch_size=5000), prepared, seed=0)
    assert math.isfinite(Training(recipe(), prepared, seed=0).run_epoch()["loss"])
