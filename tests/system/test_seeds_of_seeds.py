"""Seeds that are made of others."""

from itertools import product

from vcl_radial.system.seeds import seed_of


def test_every_sequence_of_numbers_has_a_seed_that_generators_take():
    seeds = {seed_of(*numbers) for numbers in product(range(30), repeat=2)}
    assert len(seeds) == 900
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert seed_of(1, 2) == seed_of(1, 2)
