"""`vcl_radial.methods.laplace_linearised` as an Avalanche strategy."""

from vcl_radial.methods import laplace_linearised
from vcl_radial.strategies.base import ContinualStrategy


class LaplaceLinearised(ContinualStrategy):
    """`LaplaceLinearised` as a strategy, which takes the same settings."""

    method_class = laplace_linearised.LaplaceLinearised
