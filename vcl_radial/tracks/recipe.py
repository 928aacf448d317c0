"""Keys of recipes for a network's weights, and for the method that trains it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from vcl_radial.config import outside
from vcl_radial.config.installed import offer
from vcl_radial.config.ranges import Count, NotNegative, Positive, Share, ShareBelowOne
from vcl_radial.errors import UserError, bad_value
from vcl_radial.runs.keys import Key
from vcl_radial.runs.settings import Settings
from vcl_radial.runs.spec import RunSpec

if TYPE_CHECKING:
    from vcl_radial.posteriors.base import Family


def _known_or_own(value: str, known: Sequence[str], what: str) -> str:
    if value not in known and not outside.is_named(value):
        choices = f"choose from {', '.join(known)}, or " if known else ""
        raise ValueError(f"{choices}name your own as 'package.module:{what}'")
    return value


def one_of(*known: str, what: str) -> AfterValidator:
    """A validator that accepts one of the known names, or a user's `package.module:name`."""
    return AfterValidator(partial(_known_or_own, known=known, what=what))


def _families() -> Mapping[str, type[Family]]:
    """The suite's families by name; the first call imports PyTorch."""
    from vcl_radial.posteriors.families import all_families

    return all_families()


PriorScale = Positive | Annotated[list[Positive], Field(min_length=1)] | Literal["1/sqrt(D)"]
"""The scale of the first prior: of all weights, or of each layer's."""


class MethodRecipe(Settings):
    """Keys of recipes for a method and for the weights of its network, in every track."""

    posterior: str = Key(
        "radial",
        "the family of all weights (`vcl_radial.posteriors.families`), 'none' for point estimates, "
        "or a user's own `package.module:Class`",
        of="method",
    )
    grouping: str = Key(
        "layer",
        "the weights that share a radius or are correlated: `Family.groupings`",
        of="method",
    )
    rank: Count = Key(
        8,
        "rank of the precision of a family with correlations, beside its diagonal; any method that "
        "carries a posterior takes it",
    )
    initial_rho: Annotated[float, Field(ge=-40, le=100)] = Key(
        -6.0,
        "the scale starts at sigma = softplus(initial_rho); for 'rdp', the noise of one weight",
        of="method",
        lanes="may differ",
    )
    initial_noise: Positive | None = Key(
        None,
        "the standard deviation of the noise of one weight at the start, in place of initial_rho",
        of="method",
        lanes="may differ",
    )
    prior: Annotated[str, one_of("gaussian", "scale-mixture", what="Class")] = Key(
        "gaussian",
        "the first prior (`vcl_radial.posteriors.priors`); later ones are carried posteriors",
        digest="unless default",
    )
    prior_scale: PriorScale = Key(
        1.0,
        "the first prior is N(0, prior_scale^2 I); a list has a number for each layer, heads last, "
        "and '1/sqrt(D)' takes each layer's number of parameters D",
        lanes="may differ",
    )
    mixture_share: Share = Key(
        0.5,
        "for prior = 'scale-mixture', the share of N(0, prior_scale^2)",
        digest="unless default",
    )
    mixture_scale: Positive = Key(
        0.0025,
        "for prior = 'scale-mixture', the standard deviation of the other Gaussian",
        digest="unless default",
    )
    prior_length: ShareBelowOne = Key(
        0.9,
        "for 'rdp', the length A_D(kappa_p) of a direction's mean under the first prior; 0 is "
        "uniform (`vcl_radial.nn.rdp.RDPSettings`)",
        of="method",
    )
    radius: Literal["log-normal", "weibull"] = Key(
        "log-normal",
        "for 'rdp', the distribution of the radii's factors (`vcl_radial.posteriors`)",
        of="method",
        digest="unless default",
    )
    kl_weight: NotNegative = Key(
        1.0,
        "the factor of the KL, or of a method's penalty; 1 is the evidence lower bound",
        lanes="may differ",
    )
    kl_schedule: Literal["constant", "linear", "minibatch", "warm-up"] = Key(
        "constant",
        "the factor of `kl_weight` within a task (`vcl_radial.training.kl_schedules`)",
        digest="unless default",
    )
    network: Annotated[str, one_of(what="function")] | None = Key(
        None,
        "`package.module:function` from the shape of an input to a network of features; by default "
        "the network of the track",
    )
    strategy: str = Key(
        "",
        "the method: 'vcl', 'ewc', ...; by default 'vcl' with a posterior, and 'naive' without one",
        of="method",
    )
    options: dict[str, Any] = Key(
        {}, "what the method takes beyond the keys of every recipe", of="method"
    )

    unsupported_hooks: ClassVar[dict[str, str]] = {}
    """Names of `Method` that the track does not call, so that no method may override them."""

    @model_validator(mode="after")
    def _with_strategy(self) -> MethodRecipe:
        if not self.strategy:
            object.__setattr__(self, "strategy", "naive" if self.posterior == "none" else "vcl")
        return self

    @model_validator(mode="after")
    def _mixture_has_keys(self) -> MethodRecipe:
        for key in ("mixture_share", "mixture_scale"):
            changed = getattr(self, key) != type(self).model_fields[key].default
            if changed and self.prior != "scale-mixture":
                raise ValueError(
                    f"{key} is for prior = 'scale-mixture' only: set that, or leave it"
                )
        return self

    @property
    def has_other_prior(self) -> bool:
        """Whether the first prior is not N(0, prior_scale^2 I) with one number for all weights."""
        return self.prior != "gaussian" or not isinstance(self.prior_scale, float)

    @property
    def is_without_lanes(self) -> bool:
        """Whether no program of lanes has the first prior, or the distribution of the radii."""
        return self.has_other_prior or self.radius != "log-normal"

    @property
    def one_prior_scale(self) -> float:
        """`prior_scale` of a method without a posterior of weights, which has one number."""
        assert isinstance(self.prior_scale, float)  # `check_posterior`
        return self.prior_scale

    def check_posterior(self) -> None:
        """Check that the family exists, and that the keys are for it.

        A user's family is checked when its class is imported.

        Raises:
            UserError: there is no such family, or a key is for other families.
        """
        fields = type(self).model_fields
        keys = MethodRecipe.model_fields.keys() - {"posterior"}
        changed = sorted(key for key in keys if getattr(self, key) != fields[key].default)
        if outside.is_named(self.posterior) or (self.posterior == "none" and not changed):
            return
        families = _families()
        if self.posterior not in (*families, "none"):
            raise bad_value(
                "posterior",
                self.posterior,
                f"is not known: choose from {', '.join([*families, 'none'])}, or name your own as "
                "'package.module:Class'",
            )
        for key in changed:
            names = sorted(name for name, family in families.items() if key in family.options)
            if names and self.posterior not in names:
                choices = " or ".join(map(repr, names))
                raise UserError(f"is for posterior = {choices} only: set that, or leave it", at=key)
        if self.has_other_prior and self.posterior in ("none", "rdp"):
            key = "prior" if self.prior != "gaussian" else "prior_scale"
            raise bad_value(
                key,
                getattr(self, key),
                f"is not for posterior = {self.posterior!r}: choose another one, or leave it out",
            )
        known = families.values() if self.family is None else [self.family]
        groupings = dict.fromkeys(g for family in known for g in family.groupings)
        if self.grouping not in groupings:
            raise bad_value(
                "grouping",
                self.grouping,
                f"is not for posterior = {self.posterior!r}: choose from {', '.join(groupings)}",
            )

    @property
    def family(self) -> type[Family] | None:
        """The suite's family of the weights; None for point estimates and for a user's class."""
        return None if self.posterior == "none" else _families().get(self.posterior)

    def check_class(self, cls: type[Any]) -> None:
        """Check that a method takes its options and the posterior, and only needs offered hooks.

        Args:
            cls: class of the method that the recipe names.

        Raises:
            UserError: a check fails; the message names the strategy.
        """
        from vcl_radial.methods.base import Method
        from vcl_radial.methods.options import check_method_options, method_class_of
        from vcl_radial.methods.serves import check_posterior
        from vcl_radial.training.arguments import check_kl_schedule

        self.check_posterior()
        check_method_options(self.strategy, cls, self.options, recipe_keys=type(self).model_fields)
        strategy = f"strategy = {self.strategy!r}"
        method = method_class_of(cls)
        for name, reason in self.unsupported_hooks.items():
            if getattr_static(method, name) != getattr_static(Method, name):
                raise UserError(
                    f"{strategy} {reason}: choose another one, such as 'vcl', 'ewc' or 'replay'"
                )
        check_posterior(strategy, cls.posteriors, self.posterior)
        check_kl_schedule(self.kl_schedule, cls)

    def from_outside(self) -> list[Any]:
        """The user's method, family, network and optimiser that the recipe names.

        Raises:
            UserError: one is missing or cannot be imported.
        """
        parts: list[Any] = []
        if outside.is_named(self.strategy) or offer(self.strategy):
            from vcl_radial.methods.registry import find_method

            parts.append(find_method(self.strategy))
        if outside.is_named(self.posterior):
            from vcl_radial.posteriors import family

            parts.append(family(self.posterior))
        for key in ("network", "optimizer", "prior"):
            if outside.is_named(name := getattr(self, key)):
                parts.append(outside.find(key, name))
        return parts

    def check_method(self, likelihood: str | None = None) -> None:
        """Check that all parts exist, and that the method takes the options and the posterior.

        Args:
            likelihood: name of the track's likelihood; None for any.

        Raises:
            UserError: there is no such method, family or network, or the method does not take the
                options, the posterior or the likelihood, or needs a hook that the track does not
                offer.
        """
        from vcl_radial.methods.base import Method
        from vcl_radial.methods.registry import find_method

        cls = find_method(self.strategy)
        self.check_class(cls)
        self.from_outside()
        if likelihood is None:
            return
        strategy = f"strategy = {self.strategy!r}"
        if likelihood not in cls.likelihoods:
            raise UserError(
                f"{strategy} serves a {' and '.join(sorted(cls.likelihoods))} likelihood, and here "
                f"it is {likelihood}: choose another method"
            )
        if not issubclass(cls, Method) and likelihood not in ("categorical", "one-hot"):
            raise UserError(
                f"{strategy} is an Avalanche strategy, which serves classes only: derive it from "
                "vcl_radial.methods.base.Method to train it in this track"
            )


class MethodRun(RunSpec):
    """A run whose recipe names a method.

    Attributes:
        LIKELIHOOD: name of the likelihood of the track's outputs.
    """

    LIKELIHOOD: ClassVar[str]

    if TYPE_CHECKING:
        recipe: MethodRecipe

    def check(self) -> None:
        """Check the method, its options and the parts of its network."""
        self.recipe.check_method(self.LIKELIHOOD)

    def from_outside(self) -> list[Callable[..., Any]]:
        """The user's method, family and network.

        Raises:
            UserError: one is missing or cannot be imported.
        """
        return self.recipe.from_outside()
