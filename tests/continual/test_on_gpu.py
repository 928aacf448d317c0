"""Every method ends on a GPU where it ends on a CPU, as far as other random numbers let it."""

import pytest
import torch
from tiny_runs import MULTI_HEAD

from vcl_radial.runs import catalogue, planning
from vcl_radial.tracks.continual.training import ContinualRun

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]

DRAWS_MATTER = 4.0
"""Points of accuracy; draws of weights are others on a GPU, batches and starts are not."""


def accuracy(method: str, device: str) -> float:
    (run,) = planning.plan(MULTI_HEAD, [method], [0], {"epochs": 5})
    training = ContinualRun(run.stream, run.recipe, run.seed, device=device)
    list(training.finish_tasks())
    return training.average_accuracy()


@pytest.mark.parametrize("method", catalogue.names("method"))
def test_a_method_learns_on_a_gpu_what_it_learns_on_a_cpu(method):
    assert accuracy(method, "cuda") == pytest.approx(accuracy(method, "cpu"), abs=DRAWS_MATTER)
