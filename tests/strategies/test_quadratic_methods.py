"""What L2, EWC, SI and MAS have in common, and what tells them apart."""

from functools import cache

import learners
import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.models import MTSimpleMLP
from learners import score

from vcl_radial.curvature import diagonal_fisher, output_sensitivity
from vcl_radial.data.streams import build_stream, to_avalanche
from vcl_radial.errors import UserError
from vcl_radial.nn import MLP, parameters_in_use
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.strategies.ewc import EWC
from vcl_radial.strategies.ewc_separate import SeparateEWC
from vcl_radial.strategies.l2 import L2
from vcl_radial.strategies.mas import MAS
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.si import SI

# A strength at which each keeps the tasks of permuted digits.
STRENGTHS = {L2: 100.0, EWC: 50.0, SeparateEWC: 50.0, SI: 3.0, MAS: 0.03}
METHODS = list(STRENGTHS)


def make(method, network, stream=None, **settings):
    defaults = {"eval_samples": 1, "penalty_weight": STRENGTHS.get(method, 1.0)}
    return learners.make(method, network, stream, **(defaults | settings))


def train(strategy, experiences, seed=0):
    torch.manual_seed(seed)
    for experience in experiences:
        strategy.train(experience, eval_streams=[])
    return strategy


def first(benchmark, n):
    return list(benchmark.train_stream)[:n]


def copies(named):
    return {name: value.detach().clone() for name, value in named.items()}


def parameters(strategy):
    return copies(dict(strategy.network.named_parameters()))


def equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture
def trained(request, make_network, multi_head_stream, multi_head_benchmark):
    """A function that makes a strategy and trains it on the first tasks of split-digits."""

    def build(method, tasks, **settings):
        strategy = make(method, make_network(None), multi_head_stream, **settings)
        return train(strategy, first(multi_head_benchmark, tasks))

    return build


@pytest.fixture(scope="module")
def accuracies():
    """A function that trains a method on permuted digits and gives the accuracies at the end."""
    stream = build_stream({"kind": "permuted", "dataset": "digits", "tasks": 3, "heads": "single"})
    benchmark = to_avalanche(stream)

    @cache
    def of(method):
        torch.manual_seed(0)
        network = MLP(64, 10, hidden=(100,), multi_head=False, posterior=None)
        strategy = make(method, network, stream, train_epochs=5, lr=3e-3)
        train(strategy, benchmark.train_stream)
        return [score(strategy, [experience]) for experience in benchmark.test_stream]

    return of


@pytest.mark.parametrize("method", METHODS)
def test_it_keeps_old_tasks_where_fine_tuning_forgets_them(method, accuracies):
    found, naive = accuracies(method), accuracies(Naive)
    assert sum(found) / 3 > sum(naive) / 3 + 7
    assert found[0] > naive[0] + 25
    assert found[-1] > 50


@pytest.mark.parametrize("method", METHODS)
def test_the_penalty_and_its_gradient_are_0_when_a_task_is_done(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    class Witness(SupervisedPlugin):
        def after_training_exp(self, strategy, **kwargs):
            strategy.optimizer.zero_grad()
            self.penalty = strategy.penalty()
            self.penalty.backward()
            self.weights = parameters_in_use(strategy.network, [0])
            self.slopes = [weight.grad for weight in self.weights.values()]

    witness = Witness()
    strategy = make(method, make_network(None), multi_head_stream, plugins=[witness])
    train(strategy, first(multi_head_benchmark, 1))
    assert witness.penalty.item() == 0
    assert all(slope.abs().max() == 0 for slope in witness.slopes)
    with torch.no_grad():
        for weight in witness.weights.values():
            weight.add_(0.1)
    assert strategy.method.past.penalty(witness.weights).item() > 0


@pytest.mark.parametrize("method", METHODS)
def test_the_first_task_is_learnt_as_in_fine_tuning(method, trained):
    assert equal(parameters(trained(method, 1)), parameters(trained(Naive, 1)))


@pytest.mark.parametrize("method", METHODS)
def test_without_strength_it_is_fine_tuning(method, trained):
    found = parameters(trained(method, 3, penalty_weight=0.0))
    assert equal(found, parameters(trained(Naive, 3)))


@pytest.mark.parametrize("method", METHODS)
def test_the_stronger_the_less_the_body_moves(method, trained, multi_head_benchmark):
    """Measured by the method's own penalty, on which the strength has its grip."""
    moved = []
    for factor in (0.0, 1.0, 100.0):
        strategy = trained(method, 1)
        strategy.penalty_weight = factor * STRENGTHS[method]
        strategy.train_epochs = 5
        past = strategy.method.past.state_dict()
        train(strategy, [multi_head_benchmark.train_stream[1]])
        strategy.method.past.load_state_dict(past)
        moved.append(float(strategy.method.past.penalty(parameters(strategy))))
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > 2 * moved[-1] > 0


@pytest.mark.parametrize("method", METHODS)
def test_heads_of_other_tasks_do_not_move_and_new_ones_are_free(
    method, trained, multi_head_benchmark
):
    """The head of task 4 is made early, by an evaluation: it still owes nothing to where it was."""
    strategy = trained(method, 1)
    strategy.eval([multi_head_benchmark.test_stream[3]])
    before = parameters(strategy)
    train(strategy, [multi_head_benchmark.train_stream[1]])
    after = parameters(strategy)
    for name, value in after.items():
        other = "heads.0." in name or "heads.3." in name
        assert torch.equal(value, before.get(name, value)) == (other or "heads.1." in name)
    known = strategy.method.past.precision
    assert {name.split(".")[2] for name in known if "heads" in name} == {"0", "1"}
    free = {name: value for name, value in after.items() if "heads.3." in name}
    assert free
    assert strategy.method.past.penalty(free) == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_head_keeps_its_anchor_while_others_are_trained(method, trained, multi_head_benchmark):
    strategy = trained(method, 1)
    head = {name for name in strategy.method.past.centre if "heads.0." in name}
    assert head
    anchors, precisions = (
        copies(strategy.method.past.centre),
        copies(strategy.method.past.precision),
    )
    train(strategy, first(multi_head_benchmark, 3)[1:])
    for name in anchors:
        assert torch.equal(strategy.method.past.centre[name], anchors[name]) == (name in head)
        if name in head:
            assert torch.equal(strategy.method.past.precision[name], precisions[name])


class LossOfFirstBatch(SupervisedPlugin):
    def before_backward(self, strategy, **kwargs):
        self.loss = strategy.loss.item()
        strategy.stop_training()


@pytest.mark.parametrize("method", METHODS)
def test_the_penalty_enters_the_loss_in_nats_per_training_point(
    method, trained, multi_head_benchmark
):
    experience = multi_head_benchmark.train_stream[1]
    losses = []
    for weight in (0.0, 3.0):
        strategy = trained(method, 1)
        strategy.penalty_weight = weight
        with torch.no_grad():
            for value in strategy.network.body.parameters():
                value.add_(0.01)
        penalty = strategy.method.past.penalty(parameters(strategy)).item()
        witness = LossOfFirstBatch()
        strategy.plugins.append(witness)
        train(strategy, [experience])
        losses.append(witness.loss)
    assert losses[1] - losses[0] == pytest.approx(3 * penalty / len(experience.dataset), rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_training_is_the_same_with_the_penaltys_value_and_without(method, trained):
    runs = [parameters(trained(method, 3, loss_value=value)) for value in (True, False)]
    assert equal(*runs)


@pytest.mark.parametrize("method", METHODS)
def test_one_head_for_all_is_anchored_as_a_whole(
    method, make_network, single_head_stream, single_head_benchmark
):
    strategy = make(method, make_network(None, False), single_head_stream)
    train(strategy, first(single_head_benchmark, 2))
    assert strategy.method.past.precision.keys() == parameters(strategy).keys()
    assert equal(strategy.method.past.centre, parameters(strategy)) or method is SeparateEWC


@pytest.mark.parametrize("method", METHODS)
def test_it_trains_on_avalanches_own_loaders_and_multi_head_model(method, multi_head_benchmark):
    torch.manual_seed(0)
    model = MTSimpleMLP(input_size=64, hidden_size=8)
    strategy = make(method, model)
    strategy.eval([multi_head_benchmark.test_stream[3]])  # makes a head that no task has trained
    train(strategy, first(multi_head_benchmark, 2))
    assert "3" in model.classifier.classifiers
    names = strategy.method.past.precision.keys()
    assert {name.split(".")[2] for name in names if "classifiers" in name} == {"0", "1"}
    assert max(P.max() for P in strategy.method.past.precision.values()) > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_network_with_a_posterior_is_refused_in_words(method, make_network):
    with pytest.raises(UserError, match="set posterior = 'none'"):
        make(method, make_network("gaussian"))
    with pytest.raises(UserError, match="set posterior = 'none'"):
        make(method, MLP(64, 2, hidden=(8,), posterior=RDPSettings()))


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        (EWC, {"gamma": 1.5}, r"gamma = 1.5 must be from 0 to 1"),
        (EWC, {"fisher": "sampled"}, r"fisher = 'sampled' .* empirical, predictive"),
        (SeparateEWC, {"fisher": "sampled"}, r"fisher = 'sampled' .* empirical, predictive"),
        (SI, {"xi": 0.0}, r"xi = 0.0 must be above 0"),
    ],
)
def test_an_impossible_option_is_named_with_the_mend(method, options, words, make_network):
    with pytest.raises(UserError, match=words):
        make(method, make_network(None), **options)


# What each of them remembers.


def points_of(stream, task):
    return [((stream.inputs(task, "train"), task), stream.labels(task, "train"))]


def fisher_of(strategy, stream, task, kind="empirical"):
    weights = parameters_in_use(strategy.network, [task])
    return diagonal_fisher(strategy.network, weights, points_of(stream, task), kind)


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["empirical", "predictive"])
@pytest.mark.parametrize("batch_size", [7, 1000])
def test_ewc_remembers_the_fisher_summed_over_all_points_whatever_the_batch_size(
    kind, batch_size, trained, multi_head_stream
):
    """Points that fill no whole batch, which training leaves out, count too."""

    class OtherBatches(SupervisedPlugin):
        def after_training_epoch(self, strategy, **kwargs):
            strategy.train_mb_size = batch_size

    strategy = trained(EWC, 1, fisher=kind, drop_last=True, plugins=[OtherBatches()])
    close(strategy.method.past.precision, fisher_of(strategy, multi_head_stream, 0, kind))


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_online_ewc_decays_what_is_older(gamma, trained, multi_head_stream, multi_head_benchmark):
    strategy = trained(EWC, 1, gamma=gamma)
    old = fisher_of(strategy, multi_head_stream, 0)
    train(strategy, [multi_head_benchmark.train_stream[1]])
    new = fisher_of(strategy, multi_head_stream, 1)
    for name, precision in strategy.method.past.precision.items():
        if name in new:
            older = gamma * old[name] if name in old else 0
            close(precision, gamma * (new[name] + older))
        else:  # the head of task 1, which task 2 did not use
            close(precision, gamma * old[name])


def test_separate_ewc_is_the_sum_of_a_penalty_for_each_task(
    trained, multi_head_stream, multi_head_benchmark
):
    strategy = trained(SeparateEWC, 0)
    terms = []
    for task in range(3):
        train(strategy, [multi_head_benchmark.train_stream[task]])
        fisher = fisher_of(strategy, multi_head_stream, task)
        terms.append((fisher, parameters(strategy)))
    torch.manual_seed(4)
    here = {name: w + 0.1 * torch.randn_like(w) for name, w in parameters(strategy).items()}
    expected = sum(
        0.5 * (F[name] * (here[name] - anchor[name]).square()).sum()
        for F, anchor in terms
        for name in F
    )
    close(strategy.method.past.penalty(here), expected)


def test_mas_remembers_the_sum_of_the_sensitivities_of_all_tasks(
    trained, multi_head_stream, multi_head_benchmark
):
    strategy = trained(MAS, 0)
    total = {}
    for task in range(2):
        train(strategy, [multi_head_benchmark.train_stream[task]])
        weights = parameters_in_use(strategy.network, [task])
        found = output_sensitivity(strategy.network, weights, points_of(multi_head_stream, task))
        for name, omega in found.items():
            total[name] = total.get(name, 0) + 2 * omega
    close(strategy.method.past.precision, total)


def test_l2_has_one_anchor_and_importances_of_1(trained):
    strategy = trained(L2, 3)
    here = parameters(strategy)
    moved = {name: value + 0.5 for name, value in here.items()}
    numbers = sum(value.numel() for value in here.values())
    assert strategy.method.past.penalty(moved).item() == pytest.approx(
        0.5 * 0.25 * numbers, rel=1e-5
    )
