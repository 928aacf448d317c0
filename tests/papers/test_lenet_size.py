from pathlib import Path

import pytest
import torch
from torch import nn

from reports.seeds.pruning.lenet import size as lenet
from reports.seeds.pruning.lenet.network import Kept, PointLeNet, pruned_logits
from reports.seeds.pruning.lenet.size import WHOLE, Architecture
from vcl_radial.reporting.rows import Rows

PUBLISHED = Rows.read(Path(lenet.__file__).with_name("published.csv"))


def test_the_whole_network_has_these_parameters_and_flops():
    network = PointLeNet()
    assert WHOLE.parameters == sum(p.numel() for p in network.parameters()) == 431_080
    counted = 0

    def count(layer, inputs, output):
        nonlocal counted
        inputs_of_one = layer.weight[0].numel() + 1
        counted += inputs_of_one * output.numel()

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    network(torch.zeros(1, 1, 28, 28))
    assert WHOLE.flops == counted


def test_a_pruned_network_has_the_parameters_of_its_architecture():
    """The weights and biases that move an output."""
    torch.manual_seed(0)
    whole = PointLeNet()
    for parameter in whole.parameters():
        torch.nn.init.uniform_(parameter, 0.1, 0.2)
    layers = {name: (layer.weight, layer.bias) for name, layer in whole.named_children()}
    kept = Kept(*(torch.rand(n) < 0.3 for n in (20, 50, 800, 500)))
    # Each pixel has its own images, so that no position of a maximum is the largest in all.
    pruned_logits(layers, kept, torch.rand(64, 1, 28, 28)).sum().backward()
    moving = sum(int((p.grad != 0).sum()) for p in whole.parameters())
    assert moving == kept.architecture.parameters


@pytest.mark.parametrize("method", ["BC-GNJ", "BC-GHS", "GD"])
def test_with_the_further_layer_the_printed_numbers_come_out(method):
    row = PUBLISHED.where(method=method)
    size, flops, parameters = Architecture.of(row), row.number("flops"), row.number("parameters")
    assert (size.flops + size.extra) // 1000 in (flops // 1000, flops // 1000 - 1)
    assert (size.parameters + size.extra) // 1000 == parameters // 1000
    assert abs(size.flops - flops) > 10_000


def test_an_architecture_is_written_as_in_the_table():
    row = PUBLISHED.where(method="RDP")
    size = Architecture.of(row)
    assert str(size) == "4-7-110-66"
    assert (size.flops + size.extra) // 1000 == row.number("flops") // 1000
    assert str(Architecture(1, 2, 3, 4)) == "1-2-3-4"
