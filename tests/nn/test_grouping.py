import pytest
import torch
from failing import fails

from vcl_radial.nn.grouping import GROUPINGS, grouping

SHAPES = [(3, 5), (4, 2, 3, 3)]


@pytest.mark.parametrize("name", GROUPINGS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("lead", [(), (7,), (2, 6)])
def test_taking_apart_undoes_joining(name, shape, with_bias, lead):
    weight = torch.randn(*lead, *shape)
    bias = torch.randn(*lead, shape[0]) if with_bias else None
    flat_weight = weight.reshape(-1, *shape)
    flat_bias = bias.reshape(-1, shape[0]) if with_bias else [None] * len(flat_weight)
    joined = [GROUPINGS[name].join(w, b) for w, b in zip(flat_weight, flat_bias, strict=True)]
    blocks = [
        torch.stack(parts).reshape(*lead, *parts[0].shape) for parts in zip(*joined, strict=True)
    ]
    weight_again, bias_again = GROUPINGS[name].split(blocks, torch.Size(shape))
    torch.testing.assert_close(weight_again, weight, rtol=0, atol=0)
    assert (bias_again is None) == (bias is None)
    if bias is not None:
        torch.testing.assert_close(bias_again, bias, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "sizes"), [("layer", [(1, 18)]), ("tensor", [(1, 15), (1, 3)]), ("unit", [(3, 6)])]
)
def test_groups_have_the_size_their_name_says(name, sizes):
    blocks = GROUPINGS[name].join(torch.zeros(3, 5), torch.zeros(3))
    assert [tuple(block.shape) for block in blocks] == sizes


def test_a_unit_is_grouped_with_its_own_bias():
    weight, bias = torch.arange(6.0).view(3, 2), torch.tensor([10.0, 20.0, 30.0])
    (block,) = GROUPINGS["unit"].join(weight, bias)
    assert block.tolist() == [[0, 1, 10], [2, 3, 20], [4, 5, 30]]


def test_an_unknown_grouping_is_named():
    with fails("grouping", "row", "layer, tensor, unit"):
        grouping("row")
