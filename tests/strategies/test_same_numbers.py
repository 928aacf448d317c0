"""Avalanche's loop and the suite's trainer end with the same bits, for every method."""

import pytest
import torch

from reports.methods.table import methods_by_track
from vcl_radial.conformance.in_tracks import SMALL_RUNS
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.avalanche import AvalancheRun
from vcl_radial.tracks.continual.training import ContinualRun


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["multi", "single"])
@pytest.mark.parametrize("name", methods_by_track())
def test_a_method_ends_with_the_same_bits_under_both_loops(name, heads):
    benchmark, settings = f"split-digits-{heads}-head", SMALL_RUNS["continual"].settings
    (run,) = plan(benchmark, [name], [3], {**settings, "epochs": 2, "batch_size": 50})
    runs = [kind(run.stream, run.recipe, run.seed) for kind in (ContinualRun, AvalancheRun)]
    for kind in runs:
        list(kind.finish_tasks())
    trained, driven = runs
    assert driven.rows == trained.rows
    states = [kind.method.network.state_dict() for kind in runs]
    assert states[0].keys() == states[1].keys()
    for key, tensor in states[0].items():
        assert not isinstance(tensor, torch.Tensor) or torch.equal(tensor, states[1][key]), key
    assert driven.layers == trained.layers
    assert driven.carried_bytes == trained.carried_bytes
