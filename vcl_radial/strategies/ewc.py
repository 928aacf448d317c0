"""`vcl_radial.methods.ewc` as an Avalanche strategy."""

from vcl_radial.methods import ewc
from vcl_radial.strategies.base import ContinualStrategy


class EWC(ContinualStrategy):
    """`EWC` as a strategy, which takes the same settings."""

    method_class = ewc.EWC
