"""Deep ensembles (Lakshminarayanan, Pritzel and Blundell 2017): networks from different starts.

Members are maximum a posteriori estimates without adversarial examples. Every member has a noise
precision that does not depend on the input (in the paper it does). The prediction is their mixture.
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
    member_job = job.repeated(members)
    lanes, noise = member_job.point_lanes(), member_job.noise()
    member_job.fit(lanes, noise)
    single = Mixture.under_noise(member_job.draws(lanes, 1), noise)
    assert single.degrees is not None
    mean = single.mean[0].view(-1, members, job.x.shape[1]).transpose(0, 1)
    spreads = single.scale, single.degrees
    scale, degrees = (t.view(-1, members, 1).transpose(0, 1) for t in spreads)
    return Mixture(mean, scale, degrees)
