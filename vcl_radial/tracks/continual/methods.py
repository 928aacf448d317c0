"""The method of a recipe for a task sequence, its optimiser and its likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import SGD, Adam, Optimizer

from vcl_radial.config import outside
from vcl_radial.likelihoods import OneHot
from vcl_radial.methods.base import Method
from vcl_radial.methods.options import not_made, require_base
from vcl_radial.methods.registry import find_method
from vcl_radial.optimizers.named import own_optimizer
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.tracks.continual.evaluation import eval_batch
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.methods import arguments_of, draw_own_posterior, make_method


def method_of(recipe: Recipe, network: nn.Module, **settings: Any) -> Method:
    """Make the method of a recipe with its `options`.

    Args:
        recipe: the recipe.
        network: the network that it trains.
        settings: settings of `Method` that replace the recipe's.

    Raises:
        UserError: the method does not take these options, or its constructor lacks a base argument.
    """
    return make_method(recipe, network, **_likelihood(recipe) | settings)


def by_avalanche(recipe: Recipe) -> bool:
    """Whether Avalanche's loop trains a recipe's method, not the suite's trainer."""
    return recipe.avalanche is not None or not issubclass(find_method(recipe.strategy), Method)


def make_strategy(recipe: Recipe, network: nn.Module, **settings: Any) -> Any:
    """Make the Avalanche strategy of a recipe, from a method or from a user's strategy class.

    It has the plugins and metrics of the recipe, and no loggers.

    Raises:
        UserError: the method does not take these options, or its constructor lacks a base argument.
    """
    from avalanche.training.plugins import EvaluationPlugin

    from vcl_radial.integrations.avalanche.base import Strategy
    from vcl_radial.integrations.avalanche.parts import make

    cls, stream = find_method(recipe.strategy), settings.get("tensor_stream")
    extra: dict[str, Any] = {}
    metrics: list[Any] = []
    if (parts := recipe.avalanche) is not None:
        extra["plugins"], metrics = make("plugins", parts.plugins), make("metrics", parts.metrics)
        if parts.eval_every is not None:
            extra["eval_every"] = parts.eval_every
    settings = {
        "evaluator": EvaluationPlugin(*metrics, loggers=[], collect_all=False),
        "device": "cpu" if stream is None else stream.x.device,
        **extra,
        **settings,
        "optimizer": optimizer_for(recipe),
        "train_mb_size": recipe.batch_size,
        "train_epochs": recipe.epochs,
        "eval_mb_size": eval_batch(stream),
        "drop_last": recipe.drop_last,
        "schedule": SCHEDULES[recipe.schedule],
    }
    try:
        if issubclass(cls, Method):
            return Strategy(method_of(recipe, network), **settings)
        strategy = cls(
            model=network, **_likelihood(recipe), **arguments_of(recipe, cls), **settings
        )
        require_base(strategy)
    except (TypeError, ValueError) as error:
        raise not_made(recipe.strategy, cls, recipe.options, error) from error
    draw_own_posterior(recipe, strategy.method)
    return strategy


def _likelihood(recipe: Recipe) -> dict[str, Any]:
    """The argument `likelihood`, unless it is the default: not every constructor takes it."""
    likelihood = likelihood_of(recipe)
    return {} if likelihood is None else {"likelihood": likelihood}


def likelihood_of(recipe: Recipe) -> OneHot | None:
    """The likelihood of a recipe's classes; None for a softmax, every method's default."""
    if recipe.likelihood == "categorical":
        return None
    return OneHot(recipe.label_variance, recipe.label_scale)


def optimizer_for(recipe: Recipe) -> Callable[[nn.Module], Optimizer]:
    """A function that makes the recipe's optimiser, with another learning rate for spreads."""

    def make(model: nn.Module) -> Optimizer:
        spreads = ("rho", "log_concentration", "factor")
        rho = {id(p) for name, p in model.named_parameters() if name.endswith(spreads)}
        groups: list[dict[str, Any]] = [
            {"params": [p for p in model.parameters() if id(p) not in rho]},
            {
                "params": [p for p in model.parameters() if id(p) in rho],
                "lr": recipe.rho_learning_rate or recipe.learning_rate,
            },
        ]
        groups = [group for group in groups if group["params"]]
        if recipe.optimizer == "sgd":
            return SGD(groups, lr=recipe.learning_rate)
        if outside.is_named(recipe.optimizer):
            return own_optimizer(recipe.optimizer, groups, recipe.learning_rate)
        amsgrad = recipe.optimizer == "amsgrad"
        return Adam(groups, lr=recipe.learning_rate, amsgrad=amsgrad, fused=True)

    return make
