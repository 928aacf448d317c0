from dataclasses import dataclass
from itertools import count

import pytest
import torch

from benchmarks.speed.setting import Setting
from benchmarks.speed.training import EPOCH, FIXED, STEP, Training, epochs_to_fill, floor


@dataclass(frozen=True)
class Ticking(Setting):
    """A setting whose clock goes on by a second each time that it is read."""

    now = count(1.0)

    @property
    def clock(self):
        return lambda: next(self.now)


def training(method: str, setting: Setting, **keys) -> Training:
    return Training(method, {"epochs": 2, **setting.sizes.recipe, **keys}, setting)


def ticking(setting: Setting) -> Setting:
    return Ticking(setting.sizes, 1, setting.images, setting.scratch)


def distinct(images: torch.Tensor) -> set[bytes]:
    return {image.mul(1e3).round().short().numpy().tobytes() for image in images}


@pytest.mark.parametrize("hidden", [[8], [16, 4, 8]])
def test_the_floor_has_as_many_weights_as_our_networks(tiny, hidden):
    for method, per_weight in (("naive", 1), ("radial-vcl", 2)):
        ours = training(method, tiny, hidden=hidden)
        network = ours.method.network
        parameters = [*network.body.parameters(), *network.head.head(0).parameters()]
        weights = sum(p.numel() for p in floor(ours).network.parameters())
        assert sum(p.numel() for p in parameters) == per_weight * weights


def test_the_second_task_is_trained_again_and_again_on_the_batches_of_the_floor(tiny):
    ours = training("gaussian-vcl", tiny)
    tasks, all_seen, learn = [], [], ours.method.learn

    def observed(batch, optimizer):
        tasks.append(ours.method.task.number)
        all_seen.append(batch.x.flatten(1))
        return learn(batch, optimizer)

    ours.method.learn = observed
    theirs = [x for x, _ in floor(ours).batches()]
    ours.train()
    ours.train()
    assert set(tasks) == {1}
    seen = all_seen[: len(all_seen) // 4]
    assert [len(x) for x in seen] == [len(x) for x in theirs] == [16] * 4
    assert ours.steps == 4
    assert distinct(torch.cat(seen)) <= distinct(floor(ours).x)
    assert len(distinct(torch.cat(theirs))) == 64  # none twice


def test_epochs_and_fixed_costs_add_up_to_a_call(tiny):
    ours = training("naive", ticking(tiny), epochs=5)
    # The clock is read before, after each of five epochs, and at the end: 6 ticks in all.
    assert ours.train() == {STEP: 1.0 / ours.steps, EPOCH: 1.0, FIXED: 6.0 - 5 * 1.0}


def test_a_unit_lasts_as_long_as_it_is_to_fill(tiny):
    ours = training("naive", ticking(tiny)).fill(3.0)
    assert ours.epochs == 3
    assert ours.step() == {STEP: 1 / ours.steps}


def test_the_floor_learns(tiny):
    loop = floor(training("naive", tiny, epochs=40))
    before = loop.loss(loop.x, loop.y)
    loop.train()
    assert loop.loss(loop.x, loop.y) < before / 2


def test_the_floor_computes_what_ours_does(tiny):
    ours = training("naive", tiny)
    ours.train()
    loop = floor(ours)
    network = ours.method.network
    parts = (network.body, network.head.head(1))
    of_ours = [p.detach() for part in parts for p in part.parameters()]
    loop.network.load_state_dict(dict(zip(loop.network.state_dict(), of_ours, strict=True)))
    # Not close but equal: the same products in the same precision.
    torch.testing.assert_close(loop.network(loop.x), network(loop.x, 1), rtol=0, atol=0)


def test_a_call_of_the_floor_makes_its_steps(tiny, monkeypatch):
    loop = floor(training("naive", tiny, batch_size=24))
    loop.epochs, made = 5, []
    monkeypatch.setattr(loop.optimizer, "step", lambda: made.append(1))
    loop.train()
    assert len(made) == loop.steps == 5 * 3


@pytest.mark.parametrize(("epoch", "epochs"), [(0.3, 4), (1.0, 2), (5.0, 2), (0.001, 1000)])
def test_a_unit_is_filled_with_two_epochs_or_more(epoch, epochs):
    assert epochs_to_fill(1.0, epoch) == epochs
