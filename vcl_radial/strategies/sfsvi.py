"""`vcl_radial.methods.sfsvi` as an Avalanche strategy."""

from vcl_radial.methods import sfsvi
from vcl_radial.strategies.base import ContinualStrategy


class SFSVI(ContinualStrategy):
    """`SFSVI` as a strategy, which takes the same settings."""

    method_class = sfsvi.SFSVI
