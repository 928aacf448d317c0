"""`vcl_radial.methods.naive` as an Avalanche strategy."""

from vcl_radial.methods import naive
from vcl_radial.strategies.base import ContinualStrategy


class Naive(ContinualStrategy):
    """`Naive` as a strategy, which takes the same settings."""

    method_class = naive.Naive
