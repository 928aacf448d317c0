"""The methods that keep a Gaussian posterior over point estimates, as their tests make them."""

import pytest
from avalanche.training.plugins import EvaluationPlugin
from torch.optim import Adam

from vcl_radial.strategies.badam import BAdam
from vcl_radial.strategies.ivon import IVON
from vcl_radial.strategies.vadam import VADAM
from vcl_radial.strategies.vogn import VOGN

EVERY = pytest.mark.parametrize("method", [BAdam, VADAM, VOGN, IVON])
DRAWING = pytest.mark.parametrize("method", [VADAM, VOGN, IVON])
NATURAL_STEP = 0.1
"""A learning rate for VOGN and IVON, whose step is in units of the curvature."""


def strategy(method, network, stream=None, lr=None, **settings):
    lr = lr or (NATURAL_STEP if method in {VOGN, IVON} else 1e-2)
    settings = {
        "train_mb_size": 32,
        "eval_mb_size": 500,
        "train_epochs": 1,
        "eval_samples": 5,
        "evaluator": EvaluationPlugin(),
        **settings,
    }
    return method(
        model=network,
        optimizer=lambda model: Adam(model.parameters(), lr=lr),
        tensor_stream=stream,
        **settings,
    )
