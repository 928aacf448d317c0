"""The method that a recipe names, made for a network, in tracks that train it themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.options import not_made, options_of, require_base
from vcl_radial.methods.penalties import check_kl
from vcl_radial.methods.registry import find_method
from vcl_radial.nn import variational_weights
from vcl_radial.optimizers.named import own_optimizer
from vcl_radial.tracks.networks import initial_noise

_METHOD_KEYS = ("kl_weight", "train_samples", "eval_samples")
"""Keys of a recipe that are settings of `Method`."""


def make_method(recipe: Any, network: nn.Module, **settings: Any) -> Method:
    """Make the method of a recipe with its `options`.

    Args:
        recipe: a recipe of `MethodRecipe`.
        network: the network that it trains.
        settings: settings of `Method` beyond `arguments_of`, or in their place.

    Raises:
        UserError: the class does not take these options, or does not serve the likelihood or the
            network.
    """
    cls: Any = find_method(recipe.strategy)
    make = cls
    if not issubclass(cls, Method):
        from vcl_radial.integrations.avalanche.as_method import method_of

        make = partial(method_of, cls)
    arguments = {**arguments_of(recipe, cls), **settings}
    try:
        method: Method = make(network, **arguments)
    except (TypeError, ValueError) as error:
        raise not_made(recipe.strategy, cls, recipe.options, error) from error
    require_base(method)
    draw_own_posterior(recipe, method)
    return method


def check_made(runs: Sequence[Any], make: Callable[[Any], object]) -> None:
    """Make each method of runs once, before the first run trains.

    The objective of a method with a posterior must contain the posterior's KL, and a user's
    function must give an optimiser.

    Args:
        runs: the runs of a command.
        make: function from a run to its method, or to an object that trains it. Errors other than
            `UserError` are left to the run itself, which keeps the traceback.

    Raises:
        UserError: a method cannot be made, or has no KL; the message names the method.
    """
    for run in {(run.method, run.digest()): run for run in runs}.values():
        try:
            with seeded_rng(run.seed, torch.device("cpu")):
                made = make(run)
                if isinstance(made, Method):
                    check_kl(made)
                    if outside.is_named(run.recipe.optimizer):
                        parameters, rate = made.network.parameters(), run.recipe.learning_rate
                        own_optimizer(run.recipe.optimizer, parameters, rate)
        except UserError as error:
            raise UserError(str(error), run.method) from None
        except (Exception, SystemExit):  # a user's class may fail in any way
            continue


def draws(recipe: Any, cls: type[Any]) -> bool:
    """Whether predictions draw weights, so that the recipe's numbers of samples count.

    Args:
        recipe: a recipe with the key `posterior`.
        cls: class of a method, or of an Avalanche strategy.
    """
    return recipe.posterior != "none" or "eval_samples" in cls.recipe_keys


def arguments_of(recipe: Any, cls: type[Any]) -> dict[str, Any]:
    """Arguments that a class takes from a recipe, in every track.

    These are the settings of `Method` that are keys of the recipe, the options and, if the class
    makes its posterior itself, the initial values of the posterior. The loss has no value where the
    gradient needs none.

    Args:
        recipe: a recipe of `MethodRecipe`.
        cls: class of a method, or of an Avalanche strategy.

    Raises:
        UserError: the class does not take these options, its constructor lacks a base argument, or
            it needs a hook that the track does not offer.
    """
    recipe.check_class(cls)
    keys = [key for key in _METHOD_KEYS if key in type(recipe).model_fields]
    arguments = {"loss_value": False} | {key: getattr(recipe, key) for key in keys}
    if "eval_samples" in keys and not draws(recipe, cls):
        arguments["eval_samples"] = 1
    start = {"prior_scale": recipe.prior_scale, "initial_noise": initial_noise(recipe)}
    taken = cls.recipe_keys | options_of(cls).keys() - recipe.options.keys()
    return {**arguments, **{k: v for k, v in start.items() if k in taken}, **recipe.options}


def draw_own_posterior(recipe: Any, method: Method) -> None:
    """Let a method draw weights to predict if its class has made the posterior itself."""
    if hasattr(recipe, "eval_samples") and list(variational_weights(method.network, [])):
        method.eval_samples = recipe.eval_samples
