"""A network whose point parameters are the means of a Gaussian posterior.

A Gaussian posterior over the parameters of an ordinary network, carried from task to task:

    q(w) = N(mean, 1 / precision),    p(w) = N(prior_mean, 1 / prior_precision)

The means are the network's parameters. An optimiser of `vcl_radial.optimizers` updates means and
precision together, and uses the prior's gradient and precision in closed form: the prior is neither
part of the loss nor a weight decay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from vcl_radial.errors import UserError, bad_value
from vcl_radial.nn.linearised import linearised
from vcl_radial.nn.parameters import parameters_in_use
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.posteriors import Gaussian


@dataclass
class WeightPosterior:
    """q(w) and p(w) over one parameter; all tensors have its shape."""

    mean: nn.Parameter
    prior_mean: Tensor
    prior_precision: Tensor
    precision: Tensor

    @torch.no_grad()
    def draw(self) -> Tensor:
        """Draw noise w - mean with w ~ q(w)."""
        return torch.randn_like(self.mean).mul_(self.precision.rsqrt())

    @torch.no_grad()
    def kl(self) -> Tensor:
        """KL(q || p), a scalar in nats, without gradient."""
        posterior = Gaussian(self.mean.flatten(), self.precision.rsqrt().flatten())
        prior = Gaussian(self.prior_mean.flatten(), self.prior_precision.rsqrt().flatten())
        return posterior.kl(prior)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors besides the mean, by the names of their fields."""
        return {name: value for name, value in vars(self).items() if name != "mean"}

    def carry(self) -> None:
        """Make the posterior the prior."""
        self.prior_mean = self.mean.detach().clone()
        self.prior_precision = self.precision.clone()


class GaussianNetwork(nn.Module):
    """A network whose parameters are the means of a Gaussian posterior; a call draws its weights.

    The posterior of the body and of every head is stored by parameter name and is part of the state
    dict. A head that has not been trained has the *initial* prior. The posterior and prior of a
    trained head do not change while other tasks are learned.

    Args:
        network: the network to call; its parameters become the means.
        prior_scale: standard deviation of the first prior N(0, prior_scale^2).
        initial_noise: noise of one weight at the start of a task: the posterior's precision starts
            at prior precision + 1 / initial_noise^2. If it is infinite, the precision starts at the
            prior's.
        noisy_training: whether calls in training draw the weights, or use the means.
        noisy_prediction: whether calls in evaluation draw the weights, or use the means.
        linearised: whether calls in evaluation are linear in the noise of the weights, see
            `vcl_radial.nn.linearised`.

    Raises:
        UserError: A scale is not above 0, or the network's weights have a posterior already.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        prior_scale: float = 1.0,
        initial_noise: float = math.inf,
        noisy_training: bool = True,
        noisy_prediction: bool = True,
        linearised: bool = False,
    ) -> None:
        super().__init__()
        for name, scale in (("prior_scale", prior_scale), ("initial_noise", initial_noise)):
            if not scale > 0:
                raise bad_value(name, scale, "must be above 0")
        if any(isinstance(module, VariationalWeights) for module in network.modules()):
            raise UserError(
                "the weights have one already, and this method keeps its own posterior over point "
                "estimates: set posterior = 'none'",
                at="posterior",
            )
        self.network = network
        self.prior_precision = prior_scale**-2
        self.initial_precision = initial_noise**-2
        self.noisy_training, self.noisy_prediction = noisy_training, noisy_prediction
        self.linearised = linearised
        self._carried: dict[str, dict[str, Tensor]] = {}
        self._posteriors: dict[str, WeightPosterior] = {}

    def posteriors(self, tasks: Collection[int]) -> dict[str, WeightPosterior]:
        """The posteriors of the body and of the heads of these tasks, by parameter name."""
        return {
            name: self._posterior(name, parameter)
            for name, parameter in parameters_in_use(self.network, tasks).items()
        }

    def _posterior(self, name: str, mean: nn.Parameter) -> WeightPosterior:
        if name not in self._posteriors:
            state = self._carried.pop(name, None) or {
                "prior_mean": torch.zeros_like(mean),
                "prior_precision": torch.full_like(mean, self.prior_precision),
                "precision": torch.full_like(mean, self.prior_precision + self.initial_precision),
            }
            self._posteriors[name] = WeightPosterior(mean, **state)
        return self._posteriors[name]

    def forward(self, x: Tensor, *task: int | Tensor) -> Tensor:
        """The network's output under one draw of the weights, or at their means."""
        if not (self.noisy_training if self.training else self.noisy_prediction):
            output: Tensor = self.network(x, *task)
            return output
        tasks = [t for label in task for t in torch.unique(torch.as_tensor(label)).tolist()]
        posteriors = self.posteriors(tasks)
        if self.linearised and not self.training:
            moves = {name: q.draw() for name, q in posteriors.items()}
            return linearised(self.network, moves, x, *task)
        weights = {name: q.mean + q.draw() for name, q in posteriors.items()}
        outputs: Tensor = functional_call(self.network, weights, (x, *task))
        return outputs

    def start(self, tasks: Collection[int]) -> Sequence[WeightPosterior]:
        """Set the precision of a new task to prior precision + 1 / initial_noise^2."""
        posteriors = list(self.posteriors(tasks).values())
        for q in posteriors:
            q.precision = q.prior_precision + self.initial_precision
        return posteriors

    def kl(self, tasks: Collection[int]) -> Tensor:
        """KL(q || p) of the body and of the heads of these tasks, in nats, without gradient."""
        return torch.stack([q.kl() for q in self.posteriors(tasks).values()]).sum()

    def carry(self, tasks: Collection[int]) -> None:
        """Make the posterior of the body and of the heads of these tasks the prior."""
        for q in self.posteriors(tasks).values():
            q.carry()

    def get_extra_state(self) -> dict[str, dict[str, Tensor]]:
        """The precisions and priors by parameter name; part of the state dict."""
        return self._carried | {name: q.tensors() for name, q in self._posteriors.items()}

    def set_extra_state(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Restore the precisions and priors of `get_extra_state`."""
        like = next(self.network.parameters())
        carried = {
            name: {key: tensor.to(like, copy=True) for key, tensor in tensors.items()}
            for name, tensors in state.items()
        }
        # Change the posteriors in place: an optimiser holds them too.
        self._posteriors = {name: q for name, q in self._posteriors.items() if name in carried}
        for name, q in self._posteriors.items():
            vars(q).update(carried.pop(name))
        # Their parameters may belong to heads that do not exist yet.
        self._carried = carried

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> GaussianNetwork:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        # Change the posteriors in place: an optimiser holds them too.
        for q in self._posteriors.values():
            vars(q).update({name: fn(tensor) for name, tensor in q.tensors().items()})
        for carried in self._carried.values():
            carried |= {key: fn(tensor) for key, tensor in carried.items()}
        return self
