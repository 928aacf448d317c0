"""Fixed features: the inputs of a model that is linear in its weights.

They may use the inputs of the first task before training, but no labels. A body that learns the
first task is the exception.
"""

from vcl_radial.features.base import Features
from vcl_radial.features.body import Body, BodyWithHead, FirstTaskBody
from vcl_radial.features.inputs import Inputs
from vcl_radial.features.patches import Patches
from vcl_radial.features.random_relu import RandomReLU
from vcl_radial.features.tangent import Tangent

__all__ = [
    "Body",
    "BodyWithHead",
    "Features",
    "FirstTaskBody",
    "Inputs",
    "Patches",
    "RandomReLU",
    "Tangent",
]
