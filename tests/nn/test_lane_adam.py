import pytest
import torch

from vcl_radial.nn.lane_adam import LaneAdam


@pytest.mark.parametrize("amsgrad", [False, True])
def test_it_is_torchs_with_a_rate_for_each_lane(amsgrad):
    torch.manual_seed(0)
    start = torch.randn(3, 7)
    rates = [1e-3, 1e-2, 1e-1]
    parameters = start.clone()
    ours = LaneAdam([parameters], amsgrad=amsgrad)
    theirs = [start[k].clone().requires_grad_() for k in range(3)]
    optimizers = [
        torch.optim.Adam([p], lr=rate, amsgrad=amsgrad)
        for p, rate in zip(theirs, rates, strict=True)
    ]
    for _ in range(20):
        slope = torch.randn(3, 7) * torch.tensor([[1e-4], [1.0], [30.0]])
        ours.count()
        ours.step(0, slope, torch.tensor(rates))
        for k, optimizer in enumerate(optimizers):
            theirs[k].grad = slope[k].clone()
            optimizer.step()
    torch.testing.assert_close(parameters, torch.stack(theirs).detach(), rtol=1e-5, atol=1e-6)
    for k, optimizer in enumerate(optimizers):
        v = optimizer.state[theirs[k]]["exp_avg_sq"]
        torch.testing.assert_close(ours.root_second(0)[k], (v / (1 - 0.999**20)).sqrt())
