"""Layers, heads and networks whose weights have a posterior."""

from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.nn.carry import (
    consolidate,
    kl_divergence,
    posterior_blocks,
    restart_noise,
    variational_weights,
)
from vcl_radial.nn.closed_form import ClosedFormGradients
from vcl_radial.nn.conv import BayesianConv2d, PointConv2d
from vcl_radial.nn.gaussian_network import GaussianNetwork, WeightPosterior
from vcl_radial.nn.heads import MultiHead, SingleHead
from vcl_radial.nn.linear import BayesianLinear, PointLinear
from vcl_radial.nn.mlp import MLP
from vcl_radial.nn.parameters import parameters_in_use
from vcl_radial.nn.weights import PosteriorSettings, VariationalWeights
from vcl_radial.nn.with_heads import WithHeads

__all__ = [
    "MLP",
    "BayesianConv2d",
    "BayesianLinear",
    "ClosedFormGradients",
    "GaussianNetwork",
    "MultiHead",
    "PointConv2d",
    "PointLinear",
    "PosteriorBlock",
    "PosteriorSettings",
    "SingleHead",
    "VariationalWeights",
    "WeightPosterior",
    "WithHeads",
    "consolidate",
    "kl_divergence",
    "parameters_in_use",
    "posterior_blocks",
    "restart_noise",
    "variational_weights",
]
