"""`vcl_radial.methods.mc_dropout` as an Avalanche strategy."""

from vcl_radial.methods import mc_dropout
from vcl_radial.strategies.base import ContinualStrategy


class MCDropout(ContinualStrategy):
    """`MCDropout` as a strategy, which takes the same settings."""

    method_class = mc_dropout.MCDropout
