"""`vcl_radial.methods.laplace_kronecker` as an Avalanche strategy."""

from vcl_radial.methods import laplace_kronecker
from vcl_radial.strategies.base import ContinualStrategy


class LaplaceKronecker(ContinualStrategy):
    """`LaplaceKronecker` as a strategy, which takes the same settings."""

    method_class = laplace_kronecker.LaplaceKronecker
