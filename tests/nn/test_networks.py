import copy

import pytest
import torch
from torch import nn
from torch.optim import SGD

from vcl_radial.methods.bayes_linear import BayesLinear
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import (
    MLP,
    BayesianLinear,
    PointLinear,
    WithHeads,
    consolidate,
    kl_divergence,
    variational_weights,
)


def network(**settings):
    torch.manual_seed(0)
    return MLP(6, 2, **{"hidden": (5, 4), **settings})


def test_the_default_network_is_the_papers():
    weights = sum(p.numel() for p in MLP(784, 2, posterior=None, multi_head=False).parameters())
    assert weights == 784 * 200 + 200 + 3 * (200 * 200 + 200) + 200 * 2 + 2
    bayesian = sum(p.numel() for p in MLP(784, 2, multi_head=False).parameters())
    assert bayesian == 2 * weights


@pytest.mark.parametrize("posterior", ["gaussian", "radial", None])
def test_means_start_at_he_and_biases_at_zero(posterior):
    layer = PointLinear(500, 400) if posterior is None else BayesianLinear(500, 400)
    weight, bias = (layer.weight, layer.bias) if posterior is None else layer.weights.mean()
    assert weight.std().item() == pytest.approx((2 / 500) ** 0.5, rel=0.01)
    assert not bias.any()


def test_every_call_draws_new_weights():
    net, x = network(), torch.ones(3, 6)
    assert not torch.equal(net(x, 0), net(x, 0))


def test_a_head_starts_the_same_whenever_it_is_made():
    early, late = network(), network()
    early.head.adapt([0, 1, 2])
    torch.randn(100)
    late.head.adapt([2])
    late.head.adapt([0])
    for task in (0, 2):
        first, second = early.head.head(task).weights.mean(), late.head.head(task).weights.mean()
        torch.testing.assert_close(first[0], second[0], rtol=0, atol=0)
    assert not torch.equal(
        early.head.head(0).weights.mean()[0], early.head.head(1).weights.mean()[0]
    )


def test_making_a_head_leaves_the_global_generator_alone():
    net = network()
    before = torch.get_rng_state()
    net.head.adapt([0, 1])
    assert torch.equal(before, torch.get_rng_state())


def test_a_batch_of_several_tasks_gives_each_row_its_own_head():
    net = network(posterior=None)
    x, task = torch.randn(9, 6), torch.tensor([2, 0, 2, 7, 0, 0, 7, 2, 0])
    mixed = net(x, task)
    for t in (0, 2, 7):
        torch.testing.assert_close(mixed[task == t], net(x[task == t], t))


def test_an_untrained_head_keeps_the_initial_prior_and_a_trained_one_its_own_posterior():
    net = network()
    net.head.adapt([0, 1])
    trained = copy.deepcopy(net.head.head(0).state_dict())
    consolidate(net, [0])
    own = net.head.head(0).weights.blocks[0]
    assert own.carried
    torch.testing.assert_close(own.prior_mean, trained["weights.blocks.0.mean"])
    untrained = net.head.head(1).weights.blocks[0]
    assert not untrained.carried
    assert untrained.prior_scale.unique().tolist() == [1.0]
    assert not untrained.prior_mean.any()
    # Learning task 1 moves the body; the head of task 0 and its prior stay.
    with torch.no_grad():
        untrained.mean.add_(1.0)
    consolidate(net, [1])
    assert torch.equal(own.prior_mean, trained["weights.blocks.0.mean"])
    assert torch.equal(own.mean, trained["weights.blocks.0.mean"])


def test_the_kl_counts_the_body_and_the_heads_in_use():
    net = network()
    net.head.adapt([0, 1])
    body = sum(layer.weights.kl() for layer in net.body)
    heads = [net.head.head(t).weights.kl() for t in (0, 1)]
    torch.testing.assert_close(kl_divergence(net, [0]), body + heads[0])
    torch.testing.assert_close(kl_divergence(net, [1, 0]), body + heads[0] + heads[1])
    assert kl_divergence(network(posterior=None), [0]) == 0


def test_a_single_head_is_carried_whatever_the_task():
    net = network(multi_head=False)
    consolidate(net, [3])
    assert all(block.carried for w in variational_weights(net, [0]) for block in w.blocks)


def test_a_saved_network_comes_back_with_its_heads():
    first = network()
    first.head.adapt([0, 4])
    consolidate(first, [4])
    second = network()
    second.load_state_dict(first.state_dict())
    assert sorted(second.head.heads) == ["0", "4"]
    assert second.head.head(4).weights.blocks[0].carried
    assert not second.head.head(0).weights.blocks[0].carried
    torch.manual_seed(1)
    expected = first(torch.ones(2, 6), 4)
    torch.manual_seed(1)
    torch.testing.assert_close(second(torch.ones(2, 6), 4), expected, rtol=0, atol=0)
    # Heads that come later are those that the first network would have made.
    torch.testing.assert_close(
        second.head.head(9).weights.mean()[0], first.head.head(9).weights.mean()[0]
    )


def test_any_network_with_bayesian_layers_is_carried():
    net = torch.nn.Sequential(
        BayesianLinear(4, 3), torch.nn.ReLU(), torch.nn.ModuleDict({"out": BayesianLinear(3, 2)})
    )
    assert len(list(variational_weights(net, []))) == 2
    consolidate(net, [])
    assert kl_divergence(net, []).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("posterior", [None, "radial", "gaussian"])
def test_half_precision_is_that_of_the_products_alone(posterior):
    """Eight bits of mantissa: results differ by some per cent, and everything stays float32."""
    x, y = torch.randn(64, 30), torch.randint(3, (64,))
    found = []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        net = MLP(30, 3, hidden=(50, 50), posterior=posterior, precision=precision)
        torch.manual_seed(1)
        logits = net(x, 0)
        (gradient,) = torch.autograd.grad(
            torch.nn.functional.cross_entropy(logits, y), next(net.body.parameters())
        )
        found.append((logits.detach(), gradient))
    assert not torch.equal(found[1][0], found[1][0].bfloat16().float())  # the head has all bits
    for exact, half in zip(*found, strict=True):
        assert half.dtype == torch.float32
        assert not torch.equal(exact, half)
        assert (exact - half).norm() < 0.1 * exact.norm()


KINDS = [torch.float64, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "posterior", ["none", "gaussian", "radial", "radial-eq44", "low-rank", "radial-low-rank", "rdp"]
)
def test_new_heads_have_the_type_of_the_network_and_learn(posterior, kind):
    net = MLP(4, 2, hidden=[8], posterior=posterior).to(kind)
    method = (Naive if posterior == "none" else VCL)(net)
    x = torch.randn(8, 4, dtype=kind)
    for number in range(2):
        batch = Batch(x, (x[:, number] > 0).long(), number)
        method.begin_task(Task(number, 8, lambda batch=batch: iter([batch]), heads=[number]))
        assert {weight.dtype for weight in net.head.head(number).parameters()} == {kind}
        method.learn(batch, SGD(net.parameters(), lr=1e-3))
        method.end_task(method.task)
    prediction = method.predict(x, 1)
    # KLs of radial groups of low rank leave the range of float16.
    assert prediction.isfinite().all() or (posterior, kind) == ("radial-low-rank", torch.float16)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("multi_head", [True, False])
@pytest.mark.parametrize("posterior", ["none", "radial"])
def test_heads_on_a_body_of_ones_own_have_its_type(kind, multi_head, posterior):
    body = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to(kind)
    net = WithHeads(body, (4,), 2, multi_head=multi_head, posterior=posterior)
    outputs = net(torch.randn(3, 4, dtype=kind))
    assert {outputs.dtype, *(weight.dtype for weight in net.parameters())} == {kind}


def test_a_network_that_is_converted_back_makes_heads_as_before():
    net, other = MLP(4, 2, hidden=[8]), MLP(4, 2, hidden=[8])
    other.load_state_dict(net.state_dict())
    for converted in (net.double(), net.float()):
        assert converted.head.head(int(converted.head.like.dtype is torch.float32)) is not None
    weights = zip(net.head.head(1).parameters(), other.head.head(1).parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in weights)


def test_exact_heads_keep_their_precision():
    """Their statistics are sums over many points, whatever the network computes in."""
    method = BayesLinear(MLP(4, 2, hidden=[8], posterior=None))
    method.network.bfloat16()
    head = method.network.head.head(0)
    assert {t.dtype for t in head.state_dict().values()} == {torch.float64}


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_products_in_bfloat16_give_features_in_the_type_of_the_heads(kind):
    net = network(precision="bfloat16").to(kind)
    assert net(torch.randn(3, 6, dtype=kind)).dtype is kind
