import math
from contextlib import contextmanager

import pytest
import torch
from failing import refuses
from scipy import stats

from vcl_radial.errors import Diverged
from vcl_radial.methods.base import Method
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.tasks import WarmUp
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.bandits.agents import make_agent, make_optimizer
from vcl_radial.tracks.bandits.environment import Memory, make_bandit, play
from vcl_radial.tracks.bandits.table import Table
from vcl_radial.tracks.bandits.track import Bandits

SMALL = {"hidden": [16], "steps": 20, "batch_size": 64}
LEARNERS = [name for name in Bandits.methods if name != "uniform"]
AS_NAIVE = {"optimizer": "rmsprop", "loss": "squared-error"}
"""How the track trains naive, for the other methods to be compared with it."""


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def recipe_of(method, **settings):
    (run,) = plan("bandit-mushroom", [method], [0], {**SMALL, **settings})
    return run.recipe


def easy_game(rounds=240, K=3):
    """The context is the label, one-hot, beside a column that is always 0."""
    labels = torch.arange(rounds) % K
    contexts = torch.nn.functional.one_hot(labels, K + 1).float()
    return make_bandit(Table("easy", contexts, labels, K), 0)


def seen(bandit, rounds=60):
    memory = Memory(bandit)
    for t in range(rounds):
        action = t % bandit.actions
        memory.add(action, float(bandit.rewards[t, action]))
    return memory


def agent_of(bandit, method, **settings):
    recipe = recipe_of(method, **settings)
    return make_agent(recipe, bandit.contexts.shape[1], bandit.actions)


def trained(method, rounds=60, times=1, **settings):
    bandit = easy_game()
    agent = agent_of(bandit, method, **settings)
    memory = seen(bandit, rounds)
    for _ in range(times):
        agent.learn(memory)
    return agent, bandit


def played(method, **settings):
    torch.manual_seed(0)
    bandit = easy_game(120)
    agent = agent_of(bandit, method, **settings)
    return play(bandit, agent.choose, agent.learn, pulls=3, every=40).actions


def optimizer_state(agent):
    """The state of the optimiser after the last training, by the weight's place."""
    return agent._middle["optimizer"]["state"]


def test_rmsprop_starts_with_a_second_moment_of_one_as_tensorflows_does():
    recipe, network = recipe_of("naive"), torch.nn.Linear(4, 3)
    optimizer = make_optimizer(recipe, network)
    before = [w.detach().clone() for w in network.parameters()]
    network(torch.randn(5, 4)).square().sum().backward()
    optimizer.step()
    for weight, start in zip(network.parameters(), before, strict=True):
        moment = 0.9 + 0.1 * weight.grad.square()
        step = recipe.learning_rate * weight.grad / (moment.sqrt() + 1e-5)
        torch.testing.assert_close(weight.detach(), start - step)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_finds_the_best_action_of_an_easy_game(name):
    bandit = easy_game()
    agent = agent_of(bandit, name)
    memory = play(bandit, agent.choose, agent.learn, pulls=3, every=40)
    assert float(memory.rewards[-80:].mean()) > 0.7


def test_uniform_is_uniform():
    agent = make_agent(recipe_of("uniform"), 2, 5)
    counts = torch.bincount(torch.tensor([agent.choose(torch.zeros(2)) for _ in range(5000)]))
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("name", LEARNERS)
def test_only_point_estimates_say_the_same_of_a_context_twice(name):
    agent, bandit = trained(name)
    estimates = {float(agent.rewards(bandit.contexts[0])[0]) for _ in range(5)}
    assert (len(estimates) == 1) == (name == "naive")


class Patient(Naive):
    """Has two epochs before a task, and counts the steps that are made in them and in all."""

    def __init__(self, network, **settings):
        super().__init__(network, **settings)
        self.early, self.steps, self.is_early = 0, 0, False

    @contextmanager
    def before(self):
        self.is_early = True
        yield
        self.is_early = False

    def warm_up(self):
        return WarmUp(2, self.before())

    def step(self, optimizer):
        super().step(optimizer)
        self.steps, self.early = self.steps + 1, self.early + self.is_early


def test_a_game_has_the_epochs_before_a_task_once(monkeypatch):
    monkeypatch.setattr("vcl_radial.tracks.methods.find_method", lambda name: Patient)
    agent, _ = trained("naive", times=3)
    assert (agent.method.early, agent.method.steps) == (2 * 20, (2 + 3) * 20)


class DrawsAlone(Naive):
    """Overrides the draws alone, which are of no network."""

    def draws(self, x, task=0, *, samples=None, seed=None, differentiable=False):
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(samples, len(x), 3, generator=generator)


def test_choices_are_by_the_draws_of_the_method_and_follow_from_the_seed(monkeypatch):
    monkeypatch.setattr("vcl_radial.tracks.methods.find_method", lambda name: DrawsAlone)
    actions = played("naive")
    counts = torch.bincount(actions[9:], minlength=3).numpy()
    assert stats.chisquare(counts).pvalue > 1e-3
    assert torch.equal(played("naive"), actions)


@pytest.mark.parametrize("method", ["ewc-separate", "si", "frozen-body"])
def test_a_game_is_one_task_so_what_is_carried_between_tasks_changes_nothing(method):
    """Each training ends the task for its choices, and the next one takes that back."""
    assert torch.equal(played(method, **AS_NAIVE), played("naive"))


class Reopened(Naive):
    """Counts what it is asked to do, in its state as a method of a user's would."""

    def __init__(self, network, **settings):
        super().__init__(network, **settings)
        self.ended, self.log = 0, []

    def begin_task(self, task):
        super().begin_task(task)
        whole = sum(len(batch.y) for batch in task.batches())
        self.log.append((task.number, task.points, whole, self.ended))

    def end_task(self, task):
        self.ended += 1

    def state_dict(self):
        return super().state_dict() | {"ended": self.ended}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.ended = state["ended"]


def test_each_training_begins_the_first_task_with_all_that_was_seen(monkeypatch):
    monkeypatch.setattr("vcl_radial.tracks.methods.find_method", lambda name: Reopened)
    bandit = easy_game(120)
    agent = agent_of(bandit, "naive")
    play(bandit, agent.choose, agent.learn, pulls=3, every=40)
    assert agent.method.log == [(0, n, n, 0) for n in (40, 80, 120)]
    assert agent.method.ended == 1


def test_a_training_goes_on_with_the_weights_and_the_moments_of_the_last_one():
    """Two trainings of 10 steps without decay are one of 20."""
    once = trained("naive", steps=20, decay=0.0)[0].method.network
    torch.manual_seed(0)
    twice = trained("naive", times=2, steps=10, decay=0.0)[0].method.network
    for one, other in zip(once.parameters(), twice.parameters(), strict=True):
        assert torch.equal(one, other)


def observed_steps(monkeypatch, see):
    """Have `see` called with the optimiser before every step that an agent makes."""
    from vcl_radial.tracks.bandits import agents

    def observed(recipe, network):
        optimizer = make_optimizer(recipe, network)
        step = optimizer.step

        def observing(*args, **kwargs):
            see(optimizer)
            return step(*args, **kwargs)

        optimizer.step = observing
        return optimizer

    monkeypatch.setattr(agents, "make_optimizer", observed)


def test_the_learning_rate_falls_within_a_training_and_starts_anew(monkeypatch):
    rates = []
    observed_steps(monkeypatch, lambda o: rates.append(o.param_groups[0]["lr"]))
    trained("naive", times=2)
    once = [0.1 / (1 + 0.5 * k) for k in range(20)]
    assert rates == pytest.approx(once + once)


@pytest.mark.parametrize("clip", [1e-3, 1e6])
def test_gradients_are_clipped_to_the_norm_and_no_further(clip, monkeypatch):
    """By what the second moment gathers: the squares of what the step has seen."""
    agent, _ = trained("naive", clip=clip, steps=1)
    gathered = sum(float((s["square_avg"] - 0.9).sum()) for s in optimizer_state(agent).values())
    squares = gathered / 0.1
    if clip == 1e-3:
        assert squares == pytest.approx(0, abs=1e-3)
    else:
        assert squares > 0.01


def test_badams_posterior_is_the_prior_where_no_gradient_came():
    """The last input is always 0: its weights learn nothing, whatever they started at."""
    agent, _ = trained("badam")
    q = agent.method.posterior.posteriors([0])["body.0.weight"]
    start = agent._start["network"]["network.body.0.weight"]
    assert float(start[:, -1].abs().max()) > 0
    assert torch.equal(q.mean[:, -1], torch.zeros(16))
    torch.testing.assert_close(q.precision[:, -1].rsqrt(), torch.full((16,), 0.1414))


def adams(agent):
    """Adam's weights and second moments before the posterior was read off, by the posterior."""
    state, optimizer = agent._middle["method"], agent._middle["optimizer"]
    for number, (name, q) in enumerate(agent.method.posterior.posteriors([0]).items()):
        moments = optimizer["state"][number]
        v = moments["exp_avg_sq"] / (1 - 0.999 ** float(moments["step"]))
        yield state["network"][f"network.{name}"], v, q


def test_badam_multiplies_the_prior_with_what_adam_says():
    """Appendix D.3: precision N sqrt(v) + the prior's, N = rounds x batch size."""
    agent, _ = trained("badam", rounds=60, kl_weight=1 / 64)
    for weight, v, q in adams(agent):
        data, prior = 60 * 64 * v.sqrt(), 0.1414**-2
        torch.testing.assert_close(q.precision, data + prior, rtol=1e-4, atol=0)
        torch.testing.assert_close(q.mean.detach(), data * weight / (data + prior))


def test_badams_first_prior_is_that_of_every_training():
    agent, _ = trained("badam", times=3)
    for _, v, q in adams(agent):
        data = 60 / agent.recipe.kl_weight * v.sqrt()
        torch.testing.assert_close(q.precision, data + 0.1414**-2, rtol=1e-4, atol=0)


def precision(agent):
    return sum(float(q.precision.sum()) for q in agent.method.posterior.posteriors([0]).values())


@pytest.mark.parametrize("name", ["badam", "vadam", "vogn", "ivon"])
def test_more_rounds_make_the_posterior_narrower(name):
    if name == "ivon":
        pytest.importorskip("ivon")
    agent, bandit = trained(name, rounds=20, learning_rate=0.01)
    before = precision(agent)
    agent.learn(seen(bandit, 200))
    assert precision(agent) > 2 * before


@pytest.mark.parametrize("name", ["badam", "vogn"])
def test_a_light_divergence_makes_the_posterior_narrower(name):
    def after(rounds, kl_weight):
        torch.manual_seed(0)
        agent, bandit = trained(name, rounds=20, kl_weight=kl_weight)
        agent.learn(seen(bandit, rounds))
        return precision(agent)

    assert after(100, 0.001) > 2 * after(100, 0.01)


@pytest.mark.parametrize("name", ["gaussian-vcl", "radial-vcl"])
def test_the_divergence_counts_once_for_all_that_was_seen(name):
    """With noise that drowns the rewards, the first gradient is that of KL / n."""

    def gradient(rounds):
        torch.manual_seed(0)
        agent, _ = trained(name, rounds, noise=1e9, steps=1, initial_noise=0.3)
        return torch.cat([s["exp_avg"].flatten().clone() for s in optimizer_state(agent).values()])

    one, half = gradient(60), gradient(120)
    assert one.abs().max() > 0
    torch.testing.assert_close(one, 2 * half, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("name", ["gaussian-vcl", "radial-vcl"])
def test_vcl_without_data_to_speak_of_goes_to_the_first_prior_and_stays_there(name):
    """With one point and no noise in it worth fitting, the KL decides; carried, it would narrow."""
    agent, _ = trained(name, 1, 2, noise=1e3, learning_rate=0.05, decay=0.0, steps=200)
    agent.method.load_state_dict(agent._middle["method"])
    for block in (m for m in agent.method.network.modules() if isinstance(m, PosteriorBlock)):
        assert float(block.mean.detach().abs().max()) < 0.05
        noise = block.scale() / block.family.scale_for_weight_noise(1.0, block.mean.shape[-1])
        torch.testing.assert_close(noise, torch.full_like(noise, 0.1414), rtol=0.1, atol=0)


class Broken(Method):
    def loss(self, batch, outputs):
        return super().loss(batch, outputs) * math.inf


def test_a_loss_that_is_no_number_is_said(monkeypatch):
    monkeypatch.setattr("vcl_radial.tracks.methods.find_method", lambda name: Broken)
    with refuses("of 60 rounds; lower learning_rate", kind=Diverged):
        trained("naive")


@pytest.mark.parametrize("method", ["joint", "single-task"])
def test_a_game_is_one_task_so_a_reference_plays_as_naive(method):
    assert torch.equal(played(method, **AS_NAIVE), played("naive"))
