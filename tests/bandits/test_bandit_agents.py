import math

import pytest
import torch
from scipy import stats

from vcl_radial.errors import Diverged
from vcl_radial.tracks.bandits.agents import AGENTS
from vcl_radial.tracks.bandits.agents.base import NeuralAgent
from vcl_radial.tracks.bandits.data import Table
from vcl_radial.tracks.bandits.environment import Memory, make_bandit, play
from vcl_radial.tracks.bandits.settings import Recipe

SMALL = Recipe(agent="bbb", hidden=[16], steps=20, batch_size=64)
LEARNERS = [name for name in AGENTS if name != "uniform"]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


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


def trained(name, settings=SMALL, rounds=60, times=1):
    bandit = easy_game()
    agent = AGENTS[name](bandit.contexts.shape[1], bandit.actions, settings)
    memory = seen(bandit, rounds)
    for _ in range(times):
        agent.learn(memory)
    return agent, bandit


@pytest.mark.parametrize("name", ["greedy", "mc-dropout"])
def test_rmsprop_starts_with_a_second_moment_of_one_as_tensorflows_does(name):
    agent = AGENTS[name](4, 3, SMALL)
    before = [w.detach().clone() for w in agent.network.parameters()]
    agent.network(torch.randn(5, 4)).square().sum().backward()
    agent.optimizer.step()
    for weight, start in zip(agent.network.parameters(), before, strict=True):
        moment = 0.9 + 0.1 * weight.grad.square()
        step = SMALL.learning_rate * weight.grad / (moment.sqrt() + 1e-5)
        torch.testing.assert_close(weight.detach(), start - step)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_finds_the_best_action_of_an_easy_game(name):
    bandit = easy_game()
    agent = AGENTS[name](bandit.contexts.shape[1], bandit.actions, SMALL)
    memory = play(bandit, agent.choose, agent.learn, pulls=3, every=20)
    assert float(memory.rewards[-80:].mean()) > 0.7


def test_uniform_is_uniform():
    agent = AGENTS["uniform"](2, 5, SMALL)
    counts = torch.bincount(torch.tensor([agent.choose(torch.zeros(2)) for _ in range(5000)]))
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("name", LEARNERS)
def test_only_the_greedy_agent_estimates_a_reward_without_a_draw(name):
    agent, bandit = trained(name)
    with torch.no_grad():
        estimates = {float(agent.rewards(bandit.contexts[:1])[0, 0]) for _ in range(5)}
    assert (len(estimates) == 1) == (name == "greedy")


@pytest.mark.parametrize("name", LEARNERS)
def test_an_action_that_was_never_taken_has_no_gradient(name):
    bandit = easy_game()
    agent = AGENTS[name](bandit.contexts.shape[1], bandit.actions, SMALL)
    memory = Memory(bandit)
    for t in range(40):
        memory.add(t % 2, float(bandit.rewards[t, t % 2]))
    contexts, actions, rewards = memory.batch(64)
    predicted = agent.network(contexts)
    predicted.retain_grad()
    agent.loss(predicted.gather(1, actions[:, None])[:, 0], rewards).backward()
    assert float(predicted.grad[:, :2].abs().max()) > 0
    assert float(predicted.grad[:, 2].abs().max()) == 0


@pytest.mark.parametrize("name", LEARNERS)
def test_the_learning_rate_falls_within_a_training_and_starts_anew(name):
    bandit = easy_game()
    agent = AGENTS[name](bandit.contexts.shape[1], bandit.actions, SMALL)
    rates, step = [], agent.optimizer.step

    def noting(*args, **kwargs):
        rates.append(agent.optimizer.param_groups[0]["lr"])
        return step(*args, **kwargs)

    agent.optimizer.step = noting
    memory = seen(bandit)
    agent.learn(memory)
    agent.learn(memory)
    once = [0.1 / (1 + 0.5 * k) for k in range(20)]
    assert rates == pytest.approx(once + once)


def test_gradients_are_clipped_to_the_norm_and_no_further():
    agent, bandit = trained("greedy")
    for factor, expected in ((1e6, 5.0), (1e-6, None)):
        agent.optimizer.zero_grad()
        (factor * agent.network(bandit.contexts).sum()).backward()
        grads = [p.grad for p in agent.network.parameters()]
        before = math.sqrt(sum(float(g.square().sum()) for g in grads))
        agent.before_step(seen(bandit))
        after = math.sqrt(sum(float(g.square().sum()) for g in grads))
        assert after == pytest.approx(expected or before, rel=1e-4)


def test_badams_posterior_is_the_prior_where_no_gradient_came():
    """The last input is always 0: its weights learn nothing, whatever they started at."""
    agent, _ = trained("badam")
    q = agent.posterior.posteriors([0])["body.0.weight"]
    assert float(agent.network.body[0].weight.detach()[:, -1].abs().max()) > 0
    assert torch.equal(q.mean[:, -1], torch.zeros(16))
    torch.testing.assert_close(q.precision[:, -1].sqrt() ** -1, torch.full((16,), 0.1414))


def test_badams_mean_lies_between_the_priors_and_adams_and_moves_with_the_prior():
    for scale, share in ((1e6, 1.0), (1e-6, 0.0)):
        agent, _ = trained("badam", SMALL.model_copy(update={"prior_scale": scale}))
        weight = agent.network.body[0].weight
        moved = agent.optimizer.state[weight]["exp_avg_sq"] > 1e-12
        mean = agent.posterior.posteriors([0])["body.0.weight"].mean
        torch.testing.assert_close(mean[moved], share * weight[moved], rtol=1e-3, atol=1e-4)
    agent, _ = trained("badam")
    for weight, q in zip(
        agent.network.parameters(), agent.posterior.posteriors([0]).values(), strict=True
    ):
        assert bool((q.mean.abs() <= weight.abs()).all())
        assert bool((q.mean * weight >= 0).all())


@pytest.mark.parametrize("name", ["badam", "vadam"])
def test_more_rounds_make_the_posterior_narrower(name):
    def precision(rounds):
        torch.manual_seed(0)
        agent, _ = trained(name, rounds=rounds, times=3)
        network = agent.posterior if name == "badam" else agent.network
        return sum(float(q.precision.sum()) for q in network.posteriors([0]).values())

    assert precision(200) > 2 * precision(20)


def test_a_light_divergence_makes_the_posterior_of_vadam_narrower():
    def precision(weight):
        torch.manual_seed(0)
        settings = SMALL.model_copy(update={"kl_weight": weight})
        agent, _ = trained("vadam", settings, times=3)
        return sum(float(q.precision.sum()) for q in agent.network.posteriors([0]).values())

    assert precision(0.1) > 2 * precision(1.0)


@pytest.mark.parametrize("name", ["bbb", "radial"])
def test_the_divergence_counts_once_for_all_that_was_seen(name):
    """With noise that drowns the rewards, the first gradient is that of KL / n."""
    settings = SMALL.model_copy(update={"noise": 1e9, "steps": 1, "initial_noise": 0.3})

    def gradient(rounds):
        torch.manual_seed(0)
        agent, _ = trained(name, settings, rounds)
        return torch.cat([s["exp_avg"].flatten().clone() for s in agent.optimizer.state.values()])

    one, half = gradient(60), gradient(120)
    assert one.abs().max() > 0
    torch.testing.assert_close(one, 2 * half, rtol=1e-4, atol=1e-9)


def test_badams_precision_grows_with_the_points_behind_a_gradient():
    """Eq. 10: N sqrt(v) + the prior's; the mean of a batch of B has 1/B of a point's variance."""
    agent, _ = trained("badam", rounds=60)
    for weight, q in zip(
        agent.network.parameters(), agent.posterior.posteriors([0]).values(), strict=True
    ):
        state = agent.optimizer.state[weight]
        v = state["exp_avg_sq"] / (1 - 0.999 ** float(state["step"]))
        expected = 60 * SMALL.batch_size * v.sqrt() + SMALL.prior_scale**-2
        torch.testing.assert_close(q.precision, expected, rtol=1e-4, atol=0)


def test_bbb_without_data_to_speak_of_goes_to_its_prior():
    """With one point and no noise in it worth fitting, the KL decides."""
    settings = SMALL.model_copy(
        update={"noise": 1e3, "learning_rate": 0.05, "decay": 0.0, "steps": 400}
    )
    for name in ("bbb", "radial"):
        agent, _ = trained(name, settings, rounds=1)
        for block in agent.blocks:
            assert float(block.mean.detach().abs().max()) < 0.05
            noise = block.scale() / block.family.scale_for_weight_noise(1.0, block.mean.shape[-1])
            torch.testing.assert_close(noise, torch.full_like(noise, 0.1414), rtol=0.1, atol=0)


def test_a_loss_that_is_no_number_is_said():
    class Broken(NeuralAgent):
        def __init__(self):
            super().__init__(4, 3, SMALL)
            self.network = self.point_network()
            self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)

        def loss(self, predicted, rewards):
            return super().loss(predicted, rewards) * math.inf

    with pytest.raises(Diverged, match="after 60 rounds"):
        Broken().learn(seen(easy_game()))
