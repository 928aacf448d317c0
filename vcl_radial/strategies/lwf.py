"""`vcl_radial.methods.lwf` as an Avalanche strategy."""

from vcl_radial.methods import lwf
from vcl_radial.strategies.base import ContinualStrategy


class LwF(ContinualStrategy):
    """`LwF` as a strategy, which takes the same settings."""

    method_class = lwf.LwF
