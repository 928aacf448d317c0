import copy
from itertools import pairwise

import numpy as np
import pytest
import torch
from regression_helpers import final_scores, finished, table_runs, toy

from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.splits import slices


def test_slices_follow_the_first_principal_component_and_divide_the_rows():
    torch.manual_seed(0)
    long = torch.randn(53)
    x = torch.stack([0.1 * torch.randn(53), -5 * long, 0.1 * torch.randn(53)], 1)
    parts = slices(x, 4)
    assert sorted(torch.cat(parts).tolist()) == list(range(53))
    assert {len(part) for part in parts} == {13, 14}
    along = [-5 * long[part] for part in parts]  # the axis points to its largest entry's plus
    for before, after in pairwise(along):
        assert before.max() < after.min() + 0.2


def test_where_the_rows_lie_does_not_decide_along_what_they_are_sliced():
    """The component is that of centred rows: their covariance, not their second moment."""
    torch.manual_seed(0)
    x = torch.randn(40, 3).double() * torch.tensor([0.1, 3.0, 0.1])
    axis = torch.from_numpy(np.linalg.eigh(np.cov(x.T.numpy()))[1][:, -1])
    expected = torch.tensor_split((x @ axis * axis[1].sign()).argsort(), 4)
    for offset in ([0.0, 0.0, 0.0], [100.0, 0.0, -50.0]):
        found = slices(x + torch.tensor(offset), 4)
        for part, rows in zip(found, expected, strict=True):
            assert torch.equal(part, rows)


def test_the_linear_model_ends_where_all_rows_at_once_do_and_has_not_been_there_before():
    recipe = Recipe(strategy="bayes_linear", posterior="none")
    data = toy()
    (in_sequence,) = finished(data, [1], [recipe], 5)
    (at_once,) = final_scores(data, [1], [recipe])
    assert [*in_sequence.after] == [1, 2, 3, 4, 5]
    assert in_sequence.after[5] == pytest.approx(at_once, rel=1e-9)
    assert abs(in_sequence.after[1]["rmse"] / at_once["rmse"] - 1) > 0.01


CARRIED = {
    "gaussian": {"strategy": "vcl"},
    "radial": {"strategy": "vcl"},
    "rdp": {"strategy": "rdp_vcl", "grouping": "double"},
}
"""The method that carries a posterior."""


@pytest.mark.parametrize(("posterior", "keys"), CARRIED.items())
def test_one_slice_is_the_ordinary_run_but_for_the_order_of_rows(posterior, keys):
    tiny = {"steps": 40, "batch_size": 54, "eval_samples": 40}
    recipe = Recipe(posterior=posterior, **keys, **tiny)
    data = toy()
    (at_once,) = final_scores(data, [2], [recipe], 1)
    (ordinary,) = final_scores(data, [2], [recipe])
    # Whole batches: only the order in which a batch is summed up differs.
    assert at_once == pytest.approx(ordinary, rel=0.01)


@pytest.mark.parametrize(("posterior", "keys"), CARRIED.items())
def test_a_carried_posterior_learns_from_every_slice(posterior, keys):
    tiny = {"steps": 80, "batch_size": 16, "learning_rate": 2e-2, "eval_samples": 40}
    recipe = Recipe(posterior=posterior, **keys, **tiny)
    for run in finished(toy(rows=150), [0, 1], [recipe] * 2, 3):
        scores = run.after.values()
        for before, after in pairwise(score["log_likelihood"] for score in scores):
            assert after > before


@pytest.mark.parametrize(
    "keys",
    [
        *({"posterior": posterior, **keys} for posterior, keys in CARRIED.items()),
        {"strategy": "bayes_linear", "posterior": "none"},
    ],
    ids=str,
)
def test_lanes_go_on_from_their_states_after_a_slice_with_the_same_numbers(keys):
    """One lane has learnt a slice, and the other one two."""
    recipe = Recipe(**keys, steps=70, batch_size=16, eval_samples=4)
    whole = table_runs(toy(), [0, 1], [recipe] * 2, 3)
    states = [copy.deepcopy([lane.state_dict() for lane in whole.lanes]) for _ in whole.steps()]
    again = table_runs(toy(), [0, 1], [recipe] * 2, 3)
    again.lanes[0].load_state_dict(states[0][0])
    again.lanes[1].load_state_dict(states[1][1])
    for _ in again.steps():
        pass
    exact = keys["strategy"] != "rdp_vcl"
    for ours, lane in zip(again.lanes, whole.lanes, strict=True):
        assert [*ours.after] == [1, 2, 3]
        for number, scores in lane.after.items():
            assert ours.after[number] == (scores if exact else pytest.approx(scores, rel=2e-3))


def test_a_lane_that_diverges_learns_no_further_slice_and_the_other_does():
    tiny = {"strategy": "vcl", "posterior": "gaussian", "steps": 20, "eval_samples": 2}
    recipes = [Recipe(**tiny), Recipe(**tiny, learning_rate=1e30)]
    runs = table_runs(toy(), [0, 1], recipes, 3)
    assert [[*steps] for steps in runs.steps()] == [[0]] * 3
    assert [runs.fault(lane) is None for lane in (0, 1)] == [True, False]
    assert [[*run.after] for run in runs.lanes] == [[1, 2, 3], [1]]
