"""Natural-gradient optimisers, whose state is a posterior: `vcl_radial.optimizers.vogn.VOGN`."""

from vcl_radial.optimizers.natural_gradient import (
    NaturalGradient,
    decay_within,
    effective_sample_size,
)

__all__ = [
    "NaturalGradient",
    "decay_within",
    "effective_sample_size",
]
