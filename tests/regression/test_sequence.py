from itertools import pairwise

import numpy as np
import pytest
import torch
from regression_helpers import toy

from vcl_radial.tracks.regression.sequence import slices, train_in_sequence
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.training import train_and_score


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
    recipe = Recipe(strategy="bayes_linear")
    data = toy()
    ((in_sequence, _),) = train_in_sequence(data, [1], [recipe], 5)
    (at_once,) = train_and_score(data, [1], [recipe])
    assert len(in_sequence) == 5
    assert in_sequence[-1] == pytest.approx(at_once, rel=1e-9)
    assert abs(in_sequence[0]["rmse"] / at_once["rmse"] - 1) > 0.01


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
    ((at_once, _),) = train_in_sequence(data, [2], [recipe], 1)
    (ordinary,) = train_and_score(data, [2], [recipe])
    # Whole batches: only the order in which a batch is summed up differs.
    assert at_once[0] == pytest.approx(ordinary, rel=0.01)


@pytest.mark.parametrize(("posterior", "keys"), CARRIED.items())
def test_a_carried_posterior_learns_from_every_slice(posterior, keys):
    tiny = {"steps": 80, "batch_size": 16, "learning_rate": 2e-2, "eval_samples": 40}
    recipe = Recipe(posterior=posterior, **keys, **tiny)
    for scores, _ in train_in_sequence(toy(rows=150), [0, 1], [recipe] * 2, 3):
        for before, after in pairwise(score["log_likelihood"] for score in scores):
            assert after > before
