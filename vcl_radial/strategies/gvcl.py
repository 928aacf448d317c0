"""`vcl_radial.methods.gvcl` as an Avalanche strategy."""

from vcl_radial.methods import gvcl
from vcl_radial.strategies.base import ContinualStrategy


class GVCL(ContinualStrategy):
    """`GVCL` as a strategy, which takes the same settings."""

    method_class = gvcl.GVCL
