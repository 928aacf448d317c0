import pytest
import torch

from vcl_radial.nn import MLP
from vcl_radial.nn.dropout import MCDropout


def test_dropout_keeps_the_mean_and_drops_its_share():
    ones = torch.ones(200_000)
    torch.manual_seed(0)
    dropped = MCDropout(0.3)(ones)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.005)
    assert dropped.mean().item() == pytest.approx(1, abs=0.01)


def test_a_mask_of_rows_takes_the_place_of_drawing():
    dropout, x = MCDropout(0.5, features=4), torch.randn(6, 4)
    masks = dropout.draw_mask(4000, 6, torch.Generator().manual_seed(0))
    assert masks.shape == (4000, 6, 4)
    assert masks.unique().tolist() == [0.0, 2.0]
    assert not torch.equal(masks[:, 0], masks[:, 1])
    assert (masks.mean(0) - 1).abs().max() < 5 / 4000**0.5
    dropout.mask = masks[3]
    assert torch.equal(dropout(x), x * masks[3])
    shared = dropout.draw_mask(1, 1, torch.Generator().manual_seed(0))[0]
    dropout.mask = shared
    assert torch.equal(dropout(x) == 0, (shared == 0).expand(6, 4))


def test_every_layer_of_a_perceptron_drops_its_inputs():
    network, calls = MLP(6, 2, hidden=(5, 4), posterior=None, dropout=0.3), []
    for dropout in network.dropout:
        dropout.register_forward_hook(lambda module, given, result: calls.append(given[0].shape[1]))
    network(torch.randn(3, 6))
    assert calls == [6, 5, 4]
    assert [dropout.features for dropout in network.dropout] == calls
    assert len(MLP(6, 2, hidden=(5, 4), posterior=None).dropout) == 0
