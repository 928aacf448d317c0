"""Features that stay as they are: what a model that is linear in its weights sees of inputs.

They may look at the inputs of the first task before it is learned, and at no label; but for a body
that learns the first task itself.
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
