from itertools import combinations

import pytest
import torch
from failing import fails
from hypothesis import given, settings
from hypothesis import strategies as st

from vcl_radial.data.streams.coreset import coreset, k_centre_coreset, random_coreset

BOTH = pytest.mark.parametrize("selection", ["random", "k-centre"])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def radius(x: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """The distance from a centre within which every input lies."""
    return torch.cdist(x, x[centres]).min(1).values.max()


@BOTH
def test_a_coreset_has_as_many_different_rows_as_it_should(selection):
    x = torch.randn(50, 3, generator=generator())
    for size in (1, 7, 49):
        rows = coreset(selection, x, size, generator())
        assert len(set(rows.tolist())) == len(rows) == size


@BOTH
def test_equal_inputs_are_not_taken_twice_for_one_row(selection):
    rows = coreset(selection, torch.zeros(6, 2), 5, generator())
    assert len(set(rows.tolist())) == 5


@BOTH
def test_a_generator_of_its_own_decides_alone(selection):
    x = torch.randn(40, 3, generator=generator())
    state = torch.get_rng_state()
    first = coreset(selection, x, 10, generator(1))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(5)
    assert torch.equal(coreset(selection, x, 10, generator(1)), first)
    torch.manual_seed(6)
    from_global = coreset(selection, x, 10)
    torch.manual_seed(6)
    assert torch.equal(coreset(selection, x, 10), from_global)


def test_every_row_is_drawn_as_often_as_any_other():
    draws, n, size = 4000, 10, 3
    source = generator()
    counts = torch.zeros(n)
    for _ in range(draws):
        counts[random_coreset(torch.zeros(n, 1), size, source)] += 1
    expected = draws * size / n
    # Of each count, the variance of draws * Bernoulli(size / n); 5 standard deviations.
    assert (counts - expected).abs().max() < 5 * (expected * (1 - size / n)) ** 0.5


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(3, 9),
    size=st.integers(1, 3),
    dimensions=st.integers(1, 3),
    seed=st.integers(0, 10_000),
)
def test_centres_cover_with_at_most_twice_the_best_radius(n, size, dimensions, seed):
    """Gonzalez' guarantee, against the best choice of all."""
    size = min(size, n - 1)
    x = torch.randn(n, dimensions, generator=generator(seed), dtype=torch.float64)
    found = radius(x, k_centre_coreset(x, size, generator(seed)))
    best = min(radius(x, torch.tensor(choice)) for choice in combinations(range(n), size))
    assert found <= 2 * best + 1e-12


def test_every_far_group_gets_a_centre_of_its_own():
    groups = torch.arange(5).repeat_interleave(20)
    x = 100 * torch.eye(5)[groups] + torch.randn(100, 5, generator=generator())
    for seed in range(5):
        rows = k_centre_coreset(x, 5, generator(seed))
        assert groups[rows].sort().values.tolist() == [0, 1, 2, 3, 4]


def test_each_centre_is_the_input_farthest_from_those_before():
    x = torch.randn(30, 2, 2, generator=generator())
    rows = k_centre_coreset(x, 8, generator())
    flat = x.flatten(1)
    for k in range(1, 8):
        nearest = torch.cdist(flat, flat[rows[:k]]).min(1).values
        assert nearest[rows[k]] == pytest.approx(nearest.max().item())


def test_wrong_settings_are_named():
    x = torch.zeros(10, 2)
    with fails("selection", "kmeans", "random"):
        coreset("kmeans", x, 3)
    for size in (0, 10):
        with fails("coreset_size", size):
            coreset("random", x, size)
