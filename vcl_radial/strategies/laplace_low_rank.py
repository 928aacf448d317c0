"""`vcl_radial.methods.laplace_low_rank` as an Avalanche strategy."""

from vcl_radial.methods import laplace_low_rank
from vcl_radial.strategies.base import ContinualStrategy


class LaplaceLowRank(ContinualStrategy):
    """`LaplaceLowRank` as a strategy, which takes the same settings."""

    method_class = laplace_low_rank.LaplaceLowRank
