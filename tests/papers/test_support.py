import numpy as np
import pytest
from scipy import stats

from reports.analysis.support import reweighted, update


def test_data_in_two_parts_give_the_posterior_of_all_together():
    first, second = np.array([0.3, -1.0]), np.array([0.7, 2.0])
    mean, precision = update(*update(np.zeros(2), 1.0, first, 10), second, 30)
    joint, other = update(np.zeros(2), 1.0, (10 * first + 30 * second) / 40, 40)
    assert mean == pytest.approx(joint, rel=1e-12)
    assert precision == other == 41


def test_masses_of_points_follow_bayes_rule():
    points, data = np.array([[-0.4, 0.1, 1.2]]), np.array([0.3])
    likelihood = stats.norm(data, 1 / np.sqrt(7)).pdf(points)
    assert reweighted(points, data, 7) == pytest.approx(likelihood / likelihood.sum(), rel=1e-9)


def test_with_more_data_all_mass_goes_to_the_nearest_point_and_no_further():
    points, truth = np.array([[-0.4, 0.1, 1.2]]), np.array([0.35])
    mean = (reweighted(points, truth, 1e6) * points).sum(1)
    assert mean == pytest.approx(0.1, abs=1e-12)
    full, _ = update(np.zeros(1), 1.0, truth, 1e6)
    assert full == pytest.approx(0.35, abs=1e-6)
