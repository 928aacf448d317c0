"""`vcl_radial.methods.ewc_separate` as an Avalanche strategy."""

from vcl_radial.methods import ewc_separate
from vcl_radial.strategies.base import ContinualStrategy


class SeparateEWC(ContinualStrategy):
    """`SeparateEWC` as a strategy, which takes the same settings."""

    method_class = ewc_separate.SeparateEWC
