"""The methods that keep a Gaussian posterior over point estimates, as their tests make them."""

import pytest
from learners import make

from vcl_radial.strategies.badam import BAdam
from vcl_radial.strategies.ivon import IVON
from vcl_radial.strategies.vadam import VADAM
from vcl_radial.strategies.vogn import VOGN

EVERY = pytest.mark.parametrize("method", [BAdam, VADAM, VOGN, IVON])
DRAWING = pytest.mark.parametrize("method", [VADAM, VOGN, IVON])
NATURAL_STEP = 0.1
"""A learning rate for VOGN and IVON, whose step is in units of the curvature."""


def strategy(method, network, stream=None, lr=None, **settings):
    return make(
        method,
        network,
        stream,
        lr or (NATURAL_STEP if method in {VOGN, IVON} else 1e-2),
        **settings,
    )
