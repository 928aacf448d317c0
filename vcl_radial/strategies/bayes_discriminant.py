"""`vcl_radial.methods.bayes_discriminant` as an Avalanche strategy."""

from vcl_radial.methods import bayes_discriminant
from vcl_radial.strategies.base import ContinualStrategy


class BayesDiscriminant(ContinualStrategy):
    """`BayesDiscriminant` as a strategy, which takes the same settings."""

    method_class = bayes_discriminant.BayesDiscriminant
