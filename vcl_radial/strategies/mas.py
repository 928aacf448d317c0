"""`vcl_radial.methods.mas` as an Avalanche strategy."""

from vcl_radial.methods import mas
from vcl_radial.strategies.base import ContinualStrategy


class MAS(ContinualStrategy):
    """`MAS` as a strategy, which takes the same settings."""

    method_class = mas.MAS
