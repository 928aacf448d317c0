"""VCL with the radial and directional posterior (RDP) of Oh, Adamczewski and Park (2020).

Each group of weights is a log-normal radius times a von Mises-Fisher direction, w_g = r_g x_g. The
first task's prior is the paper's (half-Cauchy radii, directions of a given concentration), and each
task's posterior is the next task's prior, as in `vcl`:

    q_t = argmin_q  E_q[ -log p(D_t | w) ] + KL(q || q_{t-1})

    KL = sum over groups of KL(vMF(mu, kappa) || vMF(mu_p, kappa_p))
       + sum over the factors of the squared radii of KL(LN(m, s^2) || LN(m_p, s_p^2))

Both terms have closed forms (see `vcl_radial.posteriors.rdp`). The paper prunes networks and does
not learn tasks in sequence; this suite carries the posterior forward.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vcl_radial.methods.serves import wrong_posterior
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import kl_divergence
from vcl_radial.nn.rdp import RDPWeights


class RDPVCL(VCL):
    """VCL for networks whose weights have an RDP; autograd differentiates the KL.

    Raises:
        UserError: no layer of the network has an RDP.
    """

    carries = "the distribution of the radii and of the direction of each group of weights"
    posteriors = frozenset({"rdp"})

    def __init__(self, network: nn.Module, **settings: Any) -> None:
        super().__init__(network, **settings)
        if not any(isinstance(module, RDPWeights) for module in network.modules()):
            raise wrong_posterior(type(self).__name__, self.posteriors)

    def penalty(self) -> Tensor:
        """KL(q || p) of the body and the heads in use, in nats."""
        return kl_divergence(self.network, self.heads)
