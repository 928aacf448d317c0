"""Deep ensembles (Lakshminarayanan, Pritzel and Blundell 2017): networks from different starts.

Members are maximum a posteriori estimates without adversarial examples. Every member has a noise
precision that does not depend on the input (in the paper it does). The prediction is their mixture.
"""

from __future__ import annotations

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.tracks.regression.lane_method import LaneMethod
from vcl_radial.tracks.regression.seeds import derived
from vcl_radial.tracks.regression.settings import Recipe

MEMBERS = 5


class Lanes(LaneMethod):
    """Deep ensembles: the members of all runs are lanes."""

    options = alike = ("members",)

    def network_seeds(self, recipe: Recipe, seed: int) -> list[int]:
        """A seed for each member."""
        return [derived(seed, f"member {k}") for k in range(recipe.options.get("members", MEMBERS))]

    def predict(self) -> Mixture:
        """Mix over the members of each run."""
        single = Mixture.under_noise(self.draws(1), self.noise)
        members = self.job.recipe.options.get("members", MEMBERS)
        assert single.degrees is not None
        mean = single.mean[0].view(-1, members, self.job.x.shape[1]).transpose(0, 1)
        spreads = single.scale, single.degrees
        scale, degrees = (t.view(-1, members, 1).transpose(0, 1) for t in spreads)
        return Mixture(mean, scale, degrees)
