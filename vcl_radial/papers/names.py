"""What `vcl-radial analyse` can draw, paper by paper; known without importing anything heavy.

An analysis is a module of this room, named as here with underscores, with a function
`analyse(setting: Setting) -> Analysis`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Analyses that stand on one page.

    Attributes:
        title: of the page.
        introduction: of the page.
        folder: where the page goes unless another is named.
        analyses: by name, each with what it shows.
    """

    title: str
    introduction: str
    folder: str
    analyses: Mapping[str, str]


GROUPS = {
    "radial": Group(
        "Soap-bubble analysis",
        "What the papers on the radial posterior show of it, computed anew with the suite's own "
        "posteriors and layers. Whether a published claim agrees is decided by the numbers. In "
        "full precision they are in the CSV file of each analysis.",
        "reports/analysis",
        {
            "soap-bubble": "how far draws are from the mean, over D (AISTATS Figs. 1 and 8, "
            "arXiv 2, 4)",
            "weight-marginal": "the density of one weight of a radial group (AISTATS Fig. 9)",
            "gradient-variance": "variance of the NLL's gradient over sigma, 3x3 conv (AISTATS "
            "Fig. 6)",
            "training-dynamics": "accuracy, NLL, KL and gradient noise in training (AISTATS "
            "Fig. 7)",
            "sample-distance": "sigma and distance of draws to the mean in training (arXiv Fig. 8)",
            "truncated-noise": "training on truncated Gaussian noise (AISTATS Fig. 11)",
            "cost": "parameters, epoch time, cost of a prediction, support (the blog's table)",
            "prior-penalty": "the corrected radial prior's penalty, and its noise (not in the "
            "papers)",
        },
    ),
    "rdp": Group(
        "Radial and directional posteriors",
        "The figures of Oh, Adamczewski and Park (2020) that show densities and Bessel functions, "
        "computed anew with the suite's own posteriors. Whether a published claim agrees is "
        "decided by the numbers. In full precision they are in the CSV file of each analysis.",
        "reports/seeds/rdp",
        {
            "vmf-density": "von Mises-Fisher directions over the concentration (RDP Fig. 1)",
            "half-cauchy": "half-Cauchy radii, and log-normal ones held against them (RDP Fig. 2)",
            "bessel-bounds": "tightness of the bounds on the ratio of Bessel functions (RDP "
            "Fig. 5)",
            "bessel-ratio": "the ratio by bounds, scipy, the suite and mpmath (RDP Fig. 8)",
            "log-bessel": "log I_v by approximations, scipy, the suite and mpmath (RDP Fig. 9)",
        },
    ),
    "badam": Group(
        "BAdam",
        "The toy regression of Kessler et al. (2020), computed anew with the suite's own methods. "
        "Whether a published claim agrees is decided by the numbers.",
        "reports/seeds/badam",
        {"toy-regression": "predictive bands of a toy regression (BAdam Fig. 1)"},
    ),
}
"""The pages by name."""

ANALYSES = {name: words for group in GROUPS.values() for name, words in group.analyses.items()}
"""All analyses by name, each with what it shows."""
