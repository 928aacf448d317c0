import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import LRSchedulerPlugin

from vcl_radial.schedules import SCHEDULES, constant, cosine
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.vcl import VCL


class Rates(SupervisedPlugin):
    """The learning rates of every epoch, as they are when it ends."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def after_training_epoch(self, strategy, **kwargs):
        self.seen.append([group["lr"] for group in strategy.optimizer.param_groups])


def two_groups(model):
    rho = [p for name, p in model.named_parameters() if name.endswith("rho")]
    means = [p for name, p in model.named_parameters() if not name.endswith("rho")]
    return torch.optim.Adam([{"params": means}, {"params": rho, "lr": 0.02}], lr=0.001)


def rates(make, network, stream, benchmark, optimizer, plugins=(), **settings):
    seen = Rates()
    strategy = make(
        model=network,
        optimizer=optimizer,
        train_mb_size=100,
        train_epochs=4,
        tensor_stream=stream,
        plugins=[seen, *plugins],
        **settings,
    )
    for experience in benchmark.train_stream[:2]:
        strategy.train(experience, eval_streams=[])
    return torch.tensor(seen.seen, dtype=torch.float64)


def test_a_cosine_falls_from_one_to_zero_by_its_middle_to_a_half():
    assert cosine(0.0) == 1.0
    assert cosine(0.5) == pytest.approx(0.5)
    assert cosine(1.0) == pytest.approx(0.0, abs=1e-15)
    assert cosine(0.2) + cosine(0.8) == pytest.approx(1.0)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("whole", [False, True], ids=["made for each task", "one optimiser"])
def test_every_task_begins_with_the_full_rate_of_each_group(
    name, whole, make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network("radial")
    optimizer, full = two_groups, [0.001, 0.02]
    if whole:
        optimizer, full = torch.optim.Adam(network.parameters(), lr=0.01), [0.01]
    found = rates(
        VCL, network, multi_head_stream, multi_head_benchmark, optimizer, schedule=SCHEDULES[name]
    )
    factors = torch.tensor([SCHEDULES[name](epoch / 4) for epoch in range(4)] * 2)
    torch.testing.assert_close(found, factors.double()[:, None] * torch.tensor([full]))


def test_somebody_elses_schedule_is_left_alone(
    make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network(None)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    halving = LRSchedulerPlugin(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5), reset_lr=False)
    found = rates(
        Naive,
        network,
        multi_head_stream,
        multi_head_benchmark,
        optimizer,
        [halving],
        schedule=constant,
    )
    assert len(set(found.flatten().tolist())) == len(found)
