import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

from vcl_radial.metrics.ranks import average_ranks


def table(**methods):
    return pd.DataFrame(methods)


def test_the_best_of_every_benchmark_has_rank_one():
    one = table(a=[90.0, 91.0], b=[80.0, 81.0], c=[70.0, 71.0])
    other = table(a=[9.0, 9.5], c=[8.0, 8.5], b=[7.0, 7.5])
    ranks = average_ranks({"one": one, "other": other})
    assert {m: rank.mean for m, rank in ranks.items()} == {"a": 1.0, "b": 2.5, "c": 2.5}
    # No draw of seeds changes the order, so that the interval has no width.
    assert all(rank.low == rank.mean == rank.high for rank in ranks.values())


def test_ranks_sum_to_those_of_distinct_methods_and_ties_share_theirs():
    values = np.random.default_rng(0).normal(size=(5, 4)).round(0)
    named = partial(pd.DataFrame, columns=list("abcd"))
    ranks = average_ranks({"x": named(values), "y": named(values[::-1] * 2)})
    assert sum(rank.mean for rank in ranks.values()) == pytest.approx(1 + 2 + 3 + 4)
    equal = average_ranks({"x": table(a=[1.0, 3.0], b=[3.0, 1.0])})
    assert equal["a"].mean == equal["b"].mean == 1.5


def test_the_interval_holds_both_orders_of_methods_whose_seeds_disagree():
    close = average_ranks({"x": table(a=[1.0, 5.0, 3.1], b=[5.0, 1.0, 3.0])})
    assert (close["a"].low, close["a"].high) == (1.0, 2.0)


def test_methods_that_a_benchmark_lacks_have_no_rank():
    ranks = average_ranks({"x": table(a=[1.0], b=[2.0]), "y": table(b=[3.0])})
    assert list(ranks) == ["b"]
    assert ranks["b"].mean == 1.0
    assert math.isnan(ranks["b"].low)  # a single seed
    assert average_ranks({"x": table(a=[1.0]), "y": table(b=[1.0])}) == {}
    assert average_ranks({}) == {}
