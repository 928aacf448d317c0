"""`vcl_radial.methods.bayes_linear` as an Avalanche strategy."""

from vcl_radial.methods import bayes_linear
from vcl_radial.strategies.base import ContinualStrategy


class BayesLinear(ContinualStrategy):
    """`BayesLinear` as a strategy, which takes the same settings."""

    method_class = bayes_linear.BayesLinear
