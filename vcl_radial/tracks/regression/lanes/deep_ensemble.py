"""Deep ensembles (Lakshminarayanan, Pritzel and Blundell 2017): networks from different starts.

Members are maximum a posteriori, each with a noise precision of its own that does not depend on the
input (theirs does), and without adversarial examples. The prediction is their mixture.
"""

from __future__ import annotations

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.tracks.regression.job import Job
from vcl_radial.tracks.regression.lanes import Lane

LANE = Lane(options={"members"}, alike={"members"})

MEMBERS = 5


def predict(job: Job) -> Mixture:
    """Train the members of all lanes as lanes, and mix."""
    members = job.recipe.options.get("members", MEMBERS)
    of_members = job.repeated(members)
    lanes, noise = of_members.point_lanes(), of_members.noise()
    of_members.fit(lanes, noise)
    every = Mixture.under_noise(of_members.draws(lanes, 1), noise)
    assert every.degrees is not None
    mean = every.mean[0].view(-1, members, job.x.shape[1]).transpose(0, 1)
    scale, degrees = (t.view(-1, members, 1).transpose(0, 1) for t in (every.scale, every.degrees))
    return Mixture(mean, scale, degrees)
