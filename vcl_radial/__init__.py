"""Variational continual learning with radial and Gaussian posteriors."""

__version__ = "0.1.0"
