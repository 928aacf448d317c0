"""A state names the posterior that it is of, and a network or method of another kind refuses it."""

import copy
import itertools

import pytest
import torch
from torch import nn

from vcl_radial.errors import UserError
from vcl_radial.methods.ewc import EWC
from vcl_radial.methods.l2 import L2
from vcl_radial.nn import MLP, PosteriorSettings, WithHeads
from vcl_radial.nn.rdp import RDPSettings

KINDS = {
    "gaussian": "gaussian",
    "radial": "radial",
    "radial-eq44": "radial-eq44",
    "by tensors": PosteriorSettings("radial", "tensor"),
    "by units": PosteriorSettings("radial", "unit"),
    "rank 8": "low-rank",
    "rank 2": PosteriorSettings("low-rank", rank=2),
    "radial of rank 8": "radial-low-rank",
    "rdp by rows": "rdp",
    "rdp by columns": RDPSettings("column"),
    "rdp of Weibull radii": RDPSettings("row", radius="weibull"),
    "points": "none",
}


def network(kind, **settings):
    return MLP(4, 2, **{"hidden": [8], "multi_head": False} | settings, posterior=KINDS[kind])


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(KINDS, 2)))
def test_a_state_of_another_kind_is_refused_and_changes_nothing(one, other):
    source, target = network(one), network(other)
    before = copy.deepcopy(target.state_dict())
    with pytest.raises(UserError, match=r"^the state of body\.0[^\n]+$"):
        target.load_state_dict(source.state_dict())
    after = target.state_dict()
    assert all(
        torch.equal(before[n], after[n]) for n in before if isinstance(before[n], torch.Tensor)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("multi_head", [True, False])
def test_a_state_of_its_own_kind_is_loaded_from_plain_tensors(kind, multi_head, tmp_path):
    source, target = network(kind, multi_head=multi_head), network(kind, multi_head=multi_head)
    x = source(torch.zeros(1, 4), 0)
    torch.save(source.state_dict(), tmp_path / "state")
    target.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    weights = zip(source.parameters(), target.parameters(), strict=True)
    assert x.isfinite().all()
    assert all(torch.equal(*pair) for pair in weights)


def test_the_refusal_names_both():
    with pytest.raises(UserError, match=r"'radial', grouping = 'layer'.* 'gaussian', grouping"):
        network("gaussian").load_state_dict(network("radial").state_dict())
    with pytest.raises(UserError, match=r"rank = 8, and the network has .* rank = 2"):
        network("rank 2").load_state_dict(network("rank 8").state_dict())
    with pytest.raises(UserError, match=r"of posterior = 'radial'.* has point estimates"):
        network("points").load_state_dict(network("radial").state_dict())


def test_a_block_alone_is_of_a_family():
    mean = torch.zeros(1, 3)
    blocks = [PosteriorSettings(name).make_block(mean) for name in ("radial", "gaussian")]
    with pytest.raises(UserError, match=r"'radial', and the network has posterior = 'gaussian'"):
        blocks[1].load_state_dict(blocks[0].state_dict())


def test_a_state_that_names_no_posterior_is_refused():
    net = network("radial")
    state = {name: v for name, v in net.state_dict().items() if isinstance(v, torch.Tensor)}
    with pytest.raises(UserError, match=r"an unnamed posterior"):
        net.load_state_dict(state)


def test_a_part_of_a_network_is_loaded_where_that_is_asked_for():
    net, body = network("radial"), network("radial").body
    part = {f"body.{name}": value for name, value in body.state_dict().items()}
    net.load_state_dict(part, strict=False)
    assert all(map(torch.equal, net.body.parameters(), body.parameters()))


def test_a_state_of_another_kind_is_refused_by_a_network_of_ones_own():
    def made(posterior):
        return WithHeads(nn.Linear(4, 4), (4,), 2, posterior=posterior)

    source = made("radial")
    source(torch.zeros(1, 4), 0)
    for posterior in ("gaussian", "none"):
        with pytest.raises(UserError, match=r"^the state of (body|head)"):
            made(posterior).load_state_dict(source.state_dict())


def test_a_state_of_another_method_is_refused():
    state = L2(network("points")).state_dict()
    with pytest.raises(UserError, match=r"^the state is of L2, and the method is EWC: load"):
        EWC(network("points")).load_state_dict(state)
