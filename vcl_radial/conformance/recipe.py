"""The recipe under check: from a class, a TOML or a name, with sizes small enough for a check."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.methods import registry
from vcl_radial.runs import catalogue
from vcl_radial.runs.planning import entry_of
from vcl_radial.runs.settings import validated
from vcl_radial.runs.spec import DEFAULT_TRACK
from vcl_radial.tracks.continual.settings import Recipe, Run

SIZES: dict[str, Any] = {"hidden": [32], "batch_size": 32, "epochs": 20, "eval_samples": 5}
"""Recipe keys of a check, which override the recipe like a benchmark's `[recipe]`."""


def recipe_for(target: str | type[Any], settings: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe of a user's `target`.

    Args:
        target: a class of a method or of a posterior, or its `package.module:Class` (VCL carries a
            posterior); the path of a recipe's TOML; a method of `vcl-radial list`; or a built-in
            strategy or a strategy of an installed package.
        settings: keys of the recipe to override; `options.key` for options of the method.

    Raises:
        UserError: the target or a key is unknown, or a value is impossible; the message gives the
            nearest name.
    """
    recipes = [*catalogue.names("method"), *(o.name for o in catalogue.installed() if o.recipe)]
    if not isinstance(target, str):
        recipe, target = _recipe_of(target), target.__name__
    elif target.endswith(".toml") or target in recipes:
        recipe = catalogue.load("method", target).recipe
    elif outside.is_named(target) and _is_family(target):
        recipe = {"posterior": target}
    elif outside.is_named(target) or target in registry.names():
        recipe = {"strategy": target}
    else:
        catalogue.check_name(target, "method", DEFAULT_TRACK, "a check")
        names = sorted({*recipes, *registry.names()})
        nearest = get_close_matches(target, names, 1, cutoff=0.0)[0]
        raise UserError(
            f"unknown method {target!r}; the nearest is {nearest!r} (or give "
            "'package.module:Class', or the path of a recipe's .toml file)"
        )
    _validated(target, recipe)  # before the check replaces the recipe's sizes
    recipe |= SIZES
    options = dict(recipe["options"]) if isinstance(recipe.get("options"), dict) else {}
    for key, value in (settings or {}).items():
        if key.startswith("options."):
            options[key.removeprefix("options.")] = value
        elif key.startswith("stream.") or key == "evaluate_on":
            raise UserError(f"{key}: a check brings its own data; set keys of the recipe")
        else:
            recipe[key] = value
    if options:
        recipe["options"] = options
    return _validated(target, recipe)


def _recipe_of(target: type[Any]) -> dict[str, Any]:
    """The recipe of a class of a method or of a posterior."""
    from vcl_radial.posteriors import Posterior

    if issubclass(target, Posterior):
        return {"posterior": outside.name_of("check", target)}
    return entry_of(target).recipe


def _validated(target: str, recipe: Mapping[str, Any]) -> Recipe:
    run = {"benchmark": "check", "method": target, "seed": 0}
    tables = {**run, "stream": {"dataset": "digits"}, "recipe": recipe}
    return validated(Run, tables, f"check x {target}").recipe


def _is_family(target: str) -> bool:
    try:
        cls = outside.find("posterior", target)
    except UserError:  # the check itself reports it
        return False
    from vcl_radial.posteriors import Posterior

    return inspect.isclass(cls) and issubclass(cls, Posterior)
