"""`vcl_radial.methods.laplace_diagonal` as an Avalanche strategy."""

from vcl_radial.methods import laplace_diagonal
from vcl_radial.strategies.base import ContinualStrategy


class LaplaceDiagonal(ContinualStrategy):
    """`LaplaceDiagonal` as a strategy, which takes the same settings."""

    method_class = laplace_diagonal.LaplaceDiagonal
