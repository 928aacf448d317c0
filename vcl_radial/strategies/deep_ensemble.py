"""`vcl_radial.methods.deep_ensemble` as an Avalanche strategy."""

from vcl_radial.methods import deep_ensemble
from vcl_radial.strategies.base import ContinualStrategy


class DeepEnsemble(ContinualStrategy):
    """`DeepEnsemble` as a strategy, which takes the same settings."""

    method_class = deep_ensemble.DeepEnsemble
