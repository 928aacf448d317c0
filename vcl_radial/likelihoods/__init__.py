"""Likelihoods: NLL of outputs in nats, what is predicted from them, and Monte-Carlo prediction."""

from vcl_radial.likelihoods.base import Bernoulli, Categorical, Gaussian, Likelihood, OneHot

__all__ = ["Bernoulli", "Categorical", "Gaussian", "Likelihood", "OneHot"]
