"""The exact posterior of `vcl_radial.methods.bayes_linear` as estimators of scikit-learn.

An estimator keeps `Sums` over all points so far, from which the posterior follows. The sums are the
same, to rounding, in whatever order and batches the points come. The model is linear in a 1 and in
the columns of X, so that fixed features come from a transformer before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from vcl_radial.errors import bad_value
from vcl_radial.likelihoods.calibration import POINTS, Sharpness
from vcl_radial.methods.bayes_linear import NOISE, NormalGamma, Sums, log_evidence, prior_precision

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Learned:
    """Sums over points, and the posterior, which is computed when it is first used.

    Attributes:
        sums: the sums.
        first: the first prior, or its noise alone where the evidence chooses its scale.
        evidence: whether it does.
    """

    sums: Sums
    first: NormalGamma
    evidence: bool

    @cached_property
    def prior(self) -> NormalGamma:
        if not self.evidence:
            return self.first
        alpha = prior_precision(self.sums, self.first)
        return replace(self.first, precision=alpha * torch.eye(len(self.first.precision)).double())

    @cached_property
    def posterior(self) -> NormalGamma:
        return self.sums.posterior(self.prior)


class _BayesLinear(BaseEstimator):  # type: ignore[misc]
    """What both estimators share."""

    _learned: _Learned

    def __init__(
        self,
        *,
        prior_scale: float | None = None,
        noise_shape: float = NOISE[0],
        noise_rate: float = NOISE[1],
    ) -> None:
        self.prior_scale = prior_scale
        self.noise_shape = noise_shape
        self.noise_rate = noise_rate

    def _learn(self, x: Array, targets: Tensor, before: Sums | None) -> None:
        """Add points `[n, D]` with targets `[n, C]` to sums over the points before."""
        for name, value in self.get_params().items():
            if value is not None and not 0 < value < float("inf"):
                raise bad_value(name, value, "must be a positive number")
        phi = _phi(x)
        sums = Sums.over([(phi, targets)], phi.new_zeros(phi.shape[1], targets.shape[1]))
        prior = NormalGamma.prior(
            phi.shape[1],
            self.prior_scale or 1.0,
            self.noise_shape,
            self.noise_rate,
            outputs=targets.shape[1],
        )
        self._learned = _Learned(
            sums if before is None else before + sums, prior, self.prior_scale is None
        )

    def _inputs(self, x: ArrayLike) -> tuple[Tensor, NormalGamma]:
        """Features `[n, D + 1]` of inputs to predict, and the posterior."""
        check_is_fitted(self, "_learned")
        return _phi(validate_data(self, x, reset=False)), self._learned.posterior

    @property
    def coef_(self) -> Array:
        """Posterior mean of the weights: `[D]` of a regressor, `[C, D]` of a classifier."""
        check_is_fitted(self, "_learned")
        return self._of_outputs(self._learned.posterior.mean[:-1].T)

    @property
    def intercept_(self) -> Any:
        """Posterior mean of the intercept: a number of a regressor, `[C]` of a classifier."""
        check_is_fitted(self, "_learned")
        return self._of_outputs(self._learned.posterior.mean[-1])

    def _of_outputs(self, tensor: Tensor) -> Array:
        outputs: Array = tensor.numpy()
        return outputs

    @property
    def prior_scale_(self) -> float:
        """The prior scale: `prior_scale`, or the one with the largest evidence."""
        check_is_fitted(self, "_learned")
        return float(self._learned.prior.precision[0, 0] ** -0.5)

    @property
    def log_evidence_(self) -> float:
        """Log p(targets | inputs, prior scale), in nats; weights and noise are integrated out."""
        check_is_fitted(self, "_learned")
        return log_evidence(self._learned.prior, self._learned.posterior)


class BayesLinearRegressor(RegressorMixin, _BayesLinear):  # type: ignore[misc]
    """Bayesian linear regression that learns batch after batch, exactly.

        y ~ N(w' (x, 1), 1 / tau),   w | tau ~ N(0, prior_scale^2 / tau),   tau ~ Gamma(shape, rate)

    Predictions are Student-t, with the weights and the noise integrated out. It carries D^2 numbers
    for D columns. A batch takes D^2 per point; the first prediction after it takes D^3, about 20
    times where the evidence chooses the prior.

    Args:
        prior_scale: scale of the prior of weights and intercept, in units of the noise; None takes
            the one with the largest evidence on all points so far.
        noise_shape: shape of the first prior of the noise precision tau.
        noise_rate: its rate, in squared units of y.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn inputs `[n, D]` and numbers `[n]`, and nothing from before."""
        return self._add(X, y, again=False)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn more points."""
        return self._add(X, y, again=hasattr(self, "_learned"))

    def _add(self, X: ArrayLike, y: ArrayLike, *, again: bool) -> Self:
        x, numbers = validate_data(self, X, y, reset=not again, y_numeric=True)
        targets = torch.as_tensor(np.array(numbers, dtype=float))[:, None]
        self._learn(x, targets, self._learned.sums if again else None)
        return self

    def _of_outputs(self, tensor: Tensor) -> Array:
        outputs: Array = tensor[0].numpy()
        return outputs

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Means `[n]`, and with `return_std` the standard deviations of new targets too."""
        phi, q = self._inputs(X)
        location, scale, degrees = q.predictive(phi)
        mean = location[:, 0].numpy()
        return (mean, (scale * (degrees / (degrees - 2)).sqrt()).numpy()) if return_std else mean


class BayesLinearClassifier(ClassifierMixin, _BayesLinear):  # type: ignore[misc]
    """Bayesian linear regression on unit vectors of classes, batch after batch, exactly.

        e_y ~ N(W' (x, 1), I / tau),   W | tau ~ N(0, prior_scale^2 / tau)
        tau ~ Gamma(shape, rate),      p(c | x) = softmax(beta m(x) / s(x))_c

    as in `vcl_radial.methods.bayes_linear`. beta is calibrated by leave-one-out predictions of up
    to 4,000 points of a batch after it: beta alone, and no predicted class, depends on how the
    points were divided. A class that first comes in a later batch was 0 in all points before, and
    so learns as if it had been known. A batch takes D^2 per point and D^3 once, about 20 times
    where the evidence chooses the prior.

    Args:
        prior_scale: scale of the prior of weights and intercept, in units of the noise; None takes
            the one with the largest evidence on all points so far.
        noise_shape: shape of the first prior of the noise precision tau.
        noise_rate: its rate.

    Attributes:
        classes_: the classes so far, sorted, `[C]`.
    """

    classes_: Array
    _sharpness: Sharpness

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn inputs `[n, D]` and classes `[n]`, and nothing from before."""
        return self._add(X, y, None, again=False)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn more points; `classes` may name classes that come later."""
        return self._add(X, y, classes, again=hasattr(self, "_learned"))

    def _add(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None, *, again: bool) -> Self:
        x, names = validate_data(self, X, y, reset=not again)
        check_classification_targets(names)
        known = self.classes_ if again else np.unique(names)
        every = np.unique(np.concatenate([known, names, known if classes is None else classes]))
        before = self._learned.sums if again else None
        if before is not None:
            cross = before.cross.new_zeros(len(before.cross), len(every))
            cross[:, np.searchsorted(every, known)] = before.cross
            before = replace(before, cross=cross)
        labels = np.searchsorted(every, names)
        targets = torch.eye(len(every)).double()[labels]
        self._learn(x, targets, before)
        self.classes_ = every
        self._sharpness = self._sharpness if again else Sharpness()
        step = max(1, len(names) // POINTS)
        held = self._learned.posterior.without_itself(_phi(x[::step]), targets[::step])
        self._sharpness.observe(held, torch.as_tensor(labels[::step]))
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities `[n, C]` of `classes_`."""
        phi, q = self._inputs(X)
        probabilities: Array = q.logits(phi, self._sharpness.beta).softmax(1).numpy()
        return probabilities

    def predict(self, X: ArrayLike) -> Array:
        """The most probable class of each input, `[n]`."""
        phi, q = self._inputs(X)
        predicted: Array = self.classes_[(phi @ q.mean).argmax(1).numpy()]
        return predicted


def _phi(x: Array) -> Tensor:
    """Inputs and a 1, float64."""
    return torch.as_tensor(np.hstack([x, np.ones((len(x), 1))]).astype(float))
