"""Table 1 of Kessler et al. 2020: cumulative reward over the optimum, mean ± sd of 10 runs."""

from __future__ import annotations

from collections.abc import Mapping

PUBLISHED: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "mushroom": {
        "badam": (0.74, 0.09),
        "mc-dropout": (0.68, 0.11),
        "gaussian-vcl": (0.60, 0.15),
        "vadam": (0.76, 0.03),
        "naive": (0.64, 0.18),
        "uniform": (-0.93, 0.09),
    },
    "statlog": {
        "badam": (0.97, 0.02),
        "mc-dropout": (0.96, 0.02),
        "gaussian-vcl": (0.71, 0.17),
        "vadam": (0.99, 0.00),
        "naive": (0.97, 0.03),
        "uniform": (0.14, 0.00),
    },
    "adult": {
        "badam": (0.13, 0.01),
        "mc-dropout": (0.13, 0.01),
        "gaussian-vcl": (0.10, 0.04),
        "vadam": (0.26, 0.02),
        "naive": (0.16, 0.01),
        "uniform": (0.07, 0.00),
    },
}
"""By data set and method: the paper says BBB for gaussian-vcl, and greedy for naive."""
