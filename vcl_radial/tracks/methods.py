"""The method that a recipe names, made for a network, in tracks that train it themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Categorical
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.options import not_made, options_of, require_base
from vcl_radial.methods.penalties import check_kl
from vcl_radial.methods.registry import find_method
from vcl_radial.tracks.networks import initial_noise
from vcl_radial.tracks.recipe import MethodRecipe, check_class


def make_method(recipe: MethodRecipe, network: nn.Module, **settings: Any) -> Method:
    """The method of a recipe, `options` and all.

    Args:
        recipe: names the method.
        network: that it trains.
        settings: those of `Method`.

    Raises:
        UserError: the class does not take these options, or does not serve the likelihood or the
            network.
    """
    cls: Any = find_method(recipe.strategy)
    of_recipe = settings_of(recipe, cls)
    make = cls
    if not issubclass(cls, Method):
        recipe.check_strategy(settings.get("likelihood", Categorical()).name)
        from vcl_radial.strategies.as_method import method_of

        make = partial(method_of, cls)
    try:
        method: Method = make(network, **settings, **of_recipe)
    except (TypeError, ValueError) as error:
        raise not_made(recipe.strategy, cls, recipe.options, error) from error
    require_base(method)
    return method


def check_made(runs: Sequence[Any], make: Callable[[Any], object]) -> None:
    """Make the methods of runs, each of them once, before the first run trains.

    A posterior has to have its KL in the objective.

    Args:
        runs: of a command.
        make: the method of a run, or what trains it. What it raises but `UserError` is left to the
            run itself, which keeps the traceback.

    Raises:
        UserError: one cannot be made, or has no KL; names the method.
    """
    for run in {(run.method, run.digest()): run for run in runs}.values():
        try:
            with seeded_rng(run.seed, torch.device("cpu")):
                made = make(run)
                if isinstance(made, Method):
                    check_kl(made)
        except UserError as error:
            raise UserError(str(error), run.method) from None
        except (Exception, SystemExit):  # a user's class may fail in any way
            continue


def draws(recipe: Any, cls: type[Any]) -> bool:
    """Whether predictions draw weights, so that the recipe's numbers of samples count.

    Args:
        recipe: with the key `posterior`.
        cls: of a method, or of an Avalanche strategy.
    """
    return recipe.posterior != "none" or "eval_samples" in cls.recipe_keys


def settings_of(recipe: Any, cls: type[Any]) -> dict[str, Any]:
    """What a class takes of a recipe beyond the settings of all methods.

    These are its options, and the start of a posterior where it keeps one of its own.

    Args:
        recipe: with the keys `strategy` and `options` beside those of `RecipeSettings`.
        cls: of a method, or of an Avalanche strategy.

    Raises:
        UserError: it does not take these options, its constructor lacks what all have, or it asks
            what the track has not.
    """
    check_class(recipe, cls)
    start = {"prior_scale": recipe.prior_scale, "initial_noise": initial_noise(recipe)}
    taken = cls.recipe_keys | options_of(cls).keys() - recipe.options.keys()
    return {**{key: value for key, value in start.items() if key in taken}, **recipe.options}
