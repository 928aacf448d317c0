import pytest
import torch

from vcl_radial.tracks.bandits.data import load_table
from vcl_radial.tracks.bandits.environment import Memory, make_bandit, play
from vcl_radial.tracks.bandits.table import Table


def classes(n=500, K=4):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(K, (n,), generator=generator)
    contexts = torch.arange(n).float()[:, None]
    return Table("classes", contexts, labels, K)


def mushrooms(n=20_000):
    labels = (torch.arange(n) % 2).long()
    return Table("mushroom", torch.arange(n).float()[:, None], labels, 2)


def test_every_row_comes_once_and_the_label_alone_earns():
    table = classes()
    bandit = make_bandit(table, 3)
    rows = bandit.contexts[:, 0].long()
    assert torch.equal(rows.sort().values, torch.arange(500))
    assert not torch.equal(rows, torch.arange(500))
    assert torch.equal(bandit.rewards.argmax(1), table.labels[rows])
    assert torch.equal(bandit.rewards.sum(1), bandit.optimum)


def test_a_cut_game_is_the_first_rounds_of_the_whole_one():
    whole, cut = make_bandit(classes(), 0), make_bandit(classes(), 0, 70)
    assert cut.rounds == 70
    assert torch.equal(cut.contexts, whole.contexts[:70])
    assert torch.equal(cut.rewards, whole.rewards[:70])


def test_mushrooms_earn_what_the_rules_say():
    bandit = make_bandit(mushrooms(), 0)
    poisonous = bandit.contexts[:, 0] % 2 == 1
    leave, eat = bandit.rewards.unbind(1)
    assert bool((leave == 0).all())
    assert bool((eat[~poisonous] == 5).all())
    assert set(eat[poisonous].tolist()) == {-35.0, 5.0}
    # Of 10,000 fair coins.
    assert float((eat[poisonous] < 0).float().mean()) == pytest.approx(0.5, abs=0.02)
    # In expectation eating a poisonous one costs 15: the best is to leave it.
    assert torch.equal(bandit.optimum, torch.where(poisonous, 0.0, 5.0))


def test_another_seed_is_another_game():
    a, b = make_bandit(mushrooms(), 0), make_bandit(mushrooms(), 1)
    assert not torch.equal(a.contexts, b.contexts)


def test_the_start_pulls_each_action_in_turn_and_training_comes_on_time():
    bandit = make_bandit(classes(100), 0)
    asked, trained = [], []

    def choose(context):
        asked.append(float(context))
        return 3

    memory = play(bandit, choose, lambda m: trained.append(m.points), pulls=2, every=30)
    assert memory.actions[:8].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert memory.actions[8:].tolist() == [3] * 92
    assert asked == bandit.contexts[8:, 0].tolist()
    assert trained == [30, 60, 90]
    chosen = bandit.rewards.gather(1, memory.actions[:, None])[:, 0]
    assert torch.equal(memory.rewards, chosen)


def test_a_game_that_is_played_perfectly_after_the_start_has_no_regret_after_it():
    table = classes()
    bandit = make_bandit(table, 0)
    memory = play(
        bandit, lambda context: int(table.labels[int(context)]), lambda m: None, pulls=1, every=50
    )
    assert float((bandit.optimum - memory.rewards)[4:].sum()) == 0


def test_batches_hold_what_was_seen_and_nothing_else():
    bandit = make_bandit(classes(), 0)
    memory = Memory(bandit)
    for k in range(7):
        memory.add(k % 4, float(k))
    torch.manual_seed(0)
    contexts, seen, _ = memory.batch(4000)
    actions, rewards = seen.long().unbind(1)
    assert set(rewards.tolist()) == set(range(7))
    assert torch.equal(contexts, bandit.contexts[rewards])
    assert torch.equal(actions, rewards % 4)


def test_all_that_was_seen_comes_once_and_in_order():
    bandit = make_bandit(classes(), 0)
    memory = Memory(bandit)
    for k in range(7):
        memory.add(k % 4, float(k))
    batches = list(memory.batches(3))
    assert [len(batch.y) for batch in batches] == [3, 3, 1]
    assert torch.equal(torch.cat([batch.x for batch in batches]), bandit.contexts[:7])
    assert torch.cat([batch.y for batch in batches])[:, 1].tolist() == list(range(7))


def test_the_context_does_not_tell_the_reward(data_dir):
    """The columns of a context are the table's without the label."""
    table = load_table("statlog", data_dir)
    assert make_bandit(table, 0).contexts.shape[1] == 9


def test_a_portfolio_earns_its_mix_of_the_stocks_and_its_own_noise(data_dir):
    table = load_table("financial", data_dir)
    bandit, other = make_bandit(table, 0), make_bandit(table, 1)
    mix = torch.linalg.lstsq(bandit.contexts, bandit.rewards).solution
    torch.testing.assert_close(mix.norm(dim=0), torch.ones(8), atol=0.02, rtol=0)
    error = bandit.rewards - bandit.contexts @ mix
    torch.testing.assert_close(error.std(0), 0.01 * torch.arange(1, 9), atol=0, rtol=0.3)
    # The optimum is an expectation, so that luck is not in it.
    torch.testing.assert_close(bandit.optimum, (bandit.contexts @ mix).amax(1), atol=0.1, rtol=0.05)
    others = torch.linalg.lstsq(other.contexts, other.rewards).solution
    assert not torch.allclose(mix, others, atol=0.1)


def test_eight_jokes_are_arms_and_the_ratings_of_all_others_the_context(data_dir):
    table = load_table("jester", data_dir)
    bandit = make_bandit(table, 0)
    assert bandit.contexts.shape[1] == 32
    assert bandit.actions == 8
    together = torch.cat([bandit.contexts, bandit.rewards], dim=1).sort().values
    given = table.contexts.sort().values
    assert sorted(together.tolist()) == sorted(given.tolist())
    assert torch.equal(bandit.optimum, bandit.rewards.max(1).values)
    assert not torch.equal(bandit.rewards.mean(0), make_bandit(table, 1).rewards.mean(0))
