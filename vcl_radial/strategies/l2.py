"""`vcl_radial.methods.l2` as an Avalanche strategy."""

from vcl_radial.methods import l2
from vcl_radial.strategies.base import ContinualStrategy


class L2(ContinualStrategy):
    """`L2` as a strategy, which takes the same settings."""

    method_class = l2.L2
