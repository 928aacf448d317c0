import pytest
import torch
from learners import loss_of_an_epoch, make, score

from vcl_radial.errors import Diverged, UserError
from vcl_radial.nn import MLP, consolidate, kl_divergence
from vcl_radial.nn.rdp import GROUPINGS, RDPSettings
from vcl_radial.posteriors.rdp import RDP, HalfCauchyPrior
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.rdp_vcl import RDPVCL


def network(grouping="row", multi_head=True):
    """An MLP whose layers, heads to come included, have an RDP."""
    torch.manual_seed(0)
    classes = 2 if multi_head else 10
    posterior = RDPSettings(grouping, 0.05)
    return MLP(64, classes, hidden=(32,), multi_head=multi_head, posterior=posterior)


def strategy(net, stream, kind=RDPVCL, **settings):
    return make(kind, net, stream, **{"lr": 1e-2, "eval_samples": 10, **settings})


def blocks(vcl):
    return [m for m in vcl.network.modules() if type(m).__name__ == "RDPBlock"]


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_it_learns_tasks_and_the_posterior_becomes_the_prior(
    grouping, multi_head_stream, multi_head_benchmark
):
    vcl = strategy(network(grouping), multi_head_stream, train_epochs=4)
    assert all(isinstance(block.prior, HalfCauchyPrior) for block in blocks(vcl))
    for task, experience in enumerate(list(multi_head_benchmark.train_stream)[:2]):
        vcl.train(experience, eval_streams=[])
        assert score(vcl, [multi_head_benchmark.test_stream[task]]) > 90
        assert kl_divergence(vcl.network, range(task + 1)).item() == pytest.approx(0, abs=1e-4)
    assert all(isinstance(block.prior, RDP) for block in blocks(vcl))


def accuracies(kind, net, stream, benchmark, **settings):
    """On the first task and on the second, after both."""
    learner = strategy(net, stream, kind, train_epochs=5, **settings)
    for experience in list(benchmark.train_stream)[:2]:
        learner.train(experience, eval_streams=[])
    return [score(learner, [experience]) for experience in benchmark.test_stream[:2]]


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_it_forgets_less_than_fine_tuning(grouping, single_head_stream, single_head_benchmark):
    """One head for all classes, where training on the second task alone wipes out the first."""
    torch.manual_seed(0)
    plain = MLP(64, 10, hidden=(32,), multi_head=False, posterior=None)
    stage = single_head_stream, single_head_benchmark
    first, second = accuracies(Naive, plain, *stage)
    assert first < 10
    assert second > 90
    first, second = accuracies(RDPVCL, network(grouping, multi_head=False), *stage)
    assert first > 50
    assert second > 75


def test_without_the_kl_it_forgets(single_head_stream, single_head_benchmark):
    """So it is the carried prior that keeps the first task, and not the family."""
    net, stage = network(multi_head=False), (single_head_stream, single_head_benchmark)
    assert accuracies(RDPVCL, net, *stage, penalty_weight=0.0)[0] < 20


@pytest.mark.parametrize("loss_value", [True, False])
def test_the_loss_holds_the_kl_over_n_whatever_the_batch(
    loss_value, multi_head_stream, multi_head_benchmark
):
    experience = multi_head_benchmark.train_stream[0]

    def loss(weight, size):
        settings = {"train_mb_size": size, "penalty_weight": weight, "loss_value": loss_value}
        return loss_of_an_epoch(strategy(network(), multi_head_stream, **settings), experience)

    fresh = network()
    fresh.head.adapt([0])
    expected = kl_divergence(fresh, [0]) / len(experience.dataset)
    for size in (50, 1000):
        torch.testing.assert_close(loss(1.0, size) - loss(0.0, size), expected)


def test_heads_of_other_tasks_keep_their_posterior_and_their_prior():
    net = network()
    net.head.adapt([0, 1])
    consolidate(net, [0])
    trained, untrained = (net.head.head(task).weights.rows for task in (0, 1))
    assert isinstance(trained.prior, RDP)
    assert isinstance(untrained.prior, HalfCauchyPrior)
    before = {name: value.clone() for name, value in trained.named_buffers()}
    with torch.no_grad():
        untrained.direction.add_(1.0)
    consolidate(net, [1])
    assert all(torch.equal(value, before[name]) for name, value in trained.named_buffers())


def test_a_network_without_an_rdp_is_refused(multi_head_stream):
    with pytest.raises(UserError, match="needs posterior = 'rdp'"):
        strategy(MLP(64, 2, hidden=(32,), posterior="gaussian"), multi_head_stream)


def test_a_concentration_that_diverges_is_said(single_head_stream, single_head_benchmark):
    net = network(multi_head=False)
    torch.nn.init.constant_(net.body[0].weights.rows.log_concentration, 1e4)  # kappa = inf
    with pytest.raises(Diverged, match="the loss became nan"):
        strategy(net, single_head_stream).train(
            single_head_benchmark.train_stream[0], eval_streams=[]
        )
