"""`vcl_radial.methods.badam` as an Avalanche strategy."""

from vcl_radial.methods import badam
from vcl_radial.strategies.base import ContinualStrategy


class BAdam(ContinualStrategy):
    """`BAdam` as a strategy, which takes the same settings."""

    method_class = badam.BAdam
