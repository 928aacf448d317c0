"""Schedules of the KL's factor: their sums, their ends, and the training that follows them."""

import io
from functools import cache
from itertools import islice

import pytest
import torch
from failing import fails
from scenarios import ALL, copies, network

from vcl_radial.methods.ewc import EWC
from vcl_radial.methods.ivon import IVON
from vcl_radial.methods.vcl import VCL
from vcl_radial.tracks.bandits import settings as bandits
from vcl_radial.tracks.continual import settings as continual
from vcl_radial.tracks.regression import settings as regression
from vcl_radial.tracks.retinopathy import settings as retinopathy
from vcl_radial.training.kl_schedules import kl_factor
from vcl_radial.training.trainer import Trainer

SCHEDULES = ["linear", "minibatch", "warm-up"]


@cache
def two_tasks():
    """Pairs of inputs and labels."""
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(300, 64, generator=generator), torch.arange(300) % 2) for _ in range(2)]


def factors(schedule, epochs, epoch_steps):
    steps = epochs * epoch_steps
    return [kl_factor(schedule, step, epoch_steps, steps) for step in range(steps)]


def trainer(schedule, kind=VCL, posterior="radial", seed_of=0, **keys):
    method = kind(network(posterior), kl_weight=0.5)
    keys = {"learning_rate": 1e-2, "batch_size": 64, "epochs": 4} | keys
    return Trainer(method, kl_schedule=schedule, seed=seed_of, **keys)


def trained(schedule, **keys):
    made = trainer(schedule, **keys).fit(two_tasks())
    return copies(made.method.network)


def same(one, other):
    return all(torch.equal(weight, other[name]) for name, weight in one.items())


@pytest.mark.parametrize("M", [1, 2, 7, 60, 5000])
def test_minibatch_factors_halve_and_sum_to_the_constants_over_every_epoch(M):
    epoch = factors("minibatch", 2, M)[M:]
    assert sum(epoch) == pytest.approx(M, rel=1e-12)
    for at in range(min(M, 50) - 1):
        assert epoch[at + 1] == epoch[at] / 2
    if M < 50:  # Blundell et al., literally
        assert epoch[0] / M == pytest.approx(2 ** (M - 1) / (2**M - 1))


def test_linear_and_warm_up_rise_to_1():
    linear, warm_up = factors("linear", 5, 3), factors("warm-up", 10, 4)
    assert linear == sorted(linear)
    assert linear[::3] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert (linear[0], linear[-1]) == (linear[2], 1)
    assert warm_up == sorted(warm_up)
    assert warm_up[:3] == [0, 0.05, 0.1]
    assert warm_up[19] < 1
    assert set(warm_up[20:]) == {1}


def test_an_incomplete_last_epoch_counts_as_one():
    """As training by steps may end with one."""
    assert [kl_factor("linear", s, 4, 6) for s in range(6)] == [0.5] * 4 + [1.0] * 2


@pytest.mark.parametrize(
    ("schedule", "keys"), [("minibatch", {"batch_size": ALL}), ("linear", {"epochs": 1})]
)
def test_schedules_that_are_constant_have_its_bits(schedule, keys):
    assert same(trained(schedule, **keys), trained("constant", **keys))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("kind", "posterior"), [(VCL, "radial"), (VCL, "low-rank"), (EWC, None)])
def test_other_schedules_change_the_training_and_leave_the_factor(schedule, kind, posterior):
    """Also where it is a penalty's, and the KL has no gradient in closed form."""
    keys = {"kind": kind, "posterior": posterior}
    made = trainer(schedule, **keys).fit(two_tasks())
    assert made.method.kl_weight == 0.5
    assert not same(copies(made.method.network), trained("constant", **keys))


def test_a_step_has_the_factor_of_its_number():
    seen = []
    made = trainer("linear", epochs=3, batch_size=100)
    made.on_step = lambda: seen.append(made.method.kl_weight)
    steps = made.steps(two_tasks())
    for epoch in islice(steps, 3):
        assert seen == pytest.approx([0.5 * epoch.epoch / 3] * len(seen))
        seen.clear()
    next(steps)
    assert seen == pytest.approx([0.5 / 3] * len(seen))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_resume_within_a_schedule_gives_the_same_numbers(schedule):
    tasks = two_tasks()
    whole = trainer(schedule)
    epochs = whole.steps(tasks)
    list(islice(epochs, 2))
    buffer = io.BytesIO()
    torch.save(whole.state_dict(), buffer)
    list(epochs)
    buffer.seek(0)
    resumed = trainer(schedule)
    resumed.load_state_dict(torch.load(buffer, weights_only=True))
    resumed.fit(tasks)
    assert same(copies(whole.method.network), copies(resumed.method.network))


def test_a_method_that_fixes_the_factor_before_its_steps_is_refused():
    with fails("kl_schedule", "IVON"):
        trainer("linear", IVON, None)


@pytest.mark.parametrize("track", [continual, regression, bandits, retinopathy])
def test_so_it_is_in_every_track(track):
    ivon = track.Recipe(strategy="ivon", posterior="none", kl_schedule="minibatch")
    with fails("kl_schedule", "IVON"):
        ivon.check_method()


def test_a_recipe_for_avalanches_loop_has_no_schedule():
    with pytest.raises(ValueError, match="kl_schedule"):
        continual.Recipe(kl_schedule="linear", avalanche={})
