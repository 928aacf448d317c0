from collections import Counter

import torch
from regression_helpers import generators, lane_data

from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.training.lane_data import LaneBatches


def test_every_row_comes_once_before_any_comes_again_in_lanes_of_unequal_length():
    points = torch.tensor([20, 21, 17])
    batches = LaneBatches(points, 6, generators(3))
    rows = torch.cat([batches.take(7), batches.take(28)])  # 210 rows of each lane
    for lane, n in enumerate(points.tolist()):
        drawn = rows[:, lane].flatten()
        for start in range(0, 210 - n, n):
            assert sorted(drawn[start : start + n].tolist()) == list(range(n))


def test_a_lane_draws_the_same_whoever_is_beside_it():
    together = LaneBatches(torch.tensor([20, 21, 17]), 6, generators(3)).take(9)
    alone = LaneBatches(torch.tensor([21]), 6, generators(1, first=1)).take(9)
    assert torch.equal(together[:, 1], alone[:, 0])


def test_orders_differ_from_pass_to_pass_and_from_lane_to_lane():
    rows = LaneBatches(torch.tensor([30, 30]), 30, generators(2)).take(2)
    assert not torch.equal(rows[0, 0], rows[1, 0])
    assert not torch.equal(rows[0, 0], rows[0, 1])


def test_a_batch_is_never_larger_than_the_smallest_lane_and_never_padding():
    data = lane_data(points=(20, 21, 17))
    batches = LaneBatches(data.points, 1000, generators(3))
    assert batches.batch_size == 17
    rows = data.in_table(batches.take(1)[0])
    x, y = (values[rows] for values in data.table)
    assert x.shape == (3, 17, 3)
    assert sorted(y[2].tolist()) == sorted(data.y[2, :17].tolist())
    assert (y != 0).all()  # padding is 0


def test_rows_are_those_of_the_lane():
    data = lane_data(points=(5, 5))
    x, y = (t[data.in_table(torch.tensor([[4, 0], [1, 1]]))] for t in data.table)
    assert torch.equal(x[0], data.x[0, [4, 0]])
    assert torch.equal(y[1], data.y[1, [1, 1]])


def test_a_mean_over_points_leaves_padding_out():
    data = lane_data(points=(4, 2))
    values = torch.tensor([[1.0, 2.0, 3.0, 6.0], [5.0, 7.0, 100.0, 100.0]])
    assert data.mean_over_points(values).tolist() == [3.0, 6.0]


def test_batch_means_are_unbiased_for_each_lane():
    data = lane_data(points=(20, 21, 17))
    batches = LaneBatches(data.points, 7, generators(3))
    counts = [Counter() for _ in range(3)]
    for rows in batches.take(420):  # a multiple of all the lanes' lengths
        for lane in range(3):
            counts[lane].update(rows[lane].tolist())
    for lane, n in enumerate(data.points.tolist()):
        assert max(counts[lane].values()) - min(counts[lane].values()) <= 1
        assert len(counts[lane]) == n


def test_a_run_is_a_lane_if_lanes_have_its_posterior_and_know_its_options():
    options = {"rate": 0.3}
    assert Recipe(strategy="mc_dropout", posterior="none", options=options).lane
    assert not Recipe(strategy="mc_dropout", posterior="radial", options=options).lane
    assert not Recipe(strategy="badam", posterior="none", options=options).lane
    assert not Recipe(strategy="vcl", posterior="radial-eq44").lane
    assert not Recipe(strategy="vcl", posterior="low-rank").lane
    assert not Recipe(strategy="vcl", posterior="radial-low-rank").lane
    assert not Recipe(strategy="naive", posterior="none").lane
    assert not Recipe(strategy="vcl", posterior="radial", network="own:Network").lane
