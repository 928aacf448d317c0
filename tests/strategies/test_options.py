"""Options of a recipe: of the type that a constructor names, and in their range."""

import re
from typing import TYPE_CHECKING, Any, Literal

import pytest

from vcl_radial.errors import UserError
from vcl_radial.strategies import ContinualStrategy
from vcl_radial.strategies.lwf import LwF
from vcl_radial.strategies.options import check_types, own_options
from vcl_radial.strategies.registry import built_in, find_strategy
from vcl_radial.tracks.continual import make_network, make_strategy
from vcl_radial.tracks.settings import Recipe

if TYPE_CHECKING:
    from nowhere import Nothing


def made(stream, strategy, **options):
    posterior = {"ml_init_vcl": "radial", "coreset_vcl": "radial"}.get(strategy, "none")
    recipe = Recipe(strategy=strategy, posterior=posterior, hidden=[8], options=options)
    return make_strategy(recipe, make_network(stream, recipe))


class Theirs(ContinualStrategy):
    def __init__(
        self,
        *,
        share: float = 0.5,
        memory: int | None = None,
        mode: Literal["near", "far"] = "near",
        sizes: tuple[int, ...] = (),
        anything=None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)


class Derived(Theirs):
    def __init__(self, *, share: str = "all", mode="near", **settings: Any) -> None:
        super().__init__(mode=mode, **settings)


class DerivedFromLwF(LwF):
    def __init__(self, *, share: float = 0.5, **settings: Any) -> None:
        super().__init__(**settings)


class Unknown(ContinualStrategy):
    def __init__(self, *, share: float, what: "Nothing", **settings: Any) -> None:
        super().__init__(**settings)


@pytest.mark.parametrize(
    ("strategy", "options", "words"),
    [
        ("ml_init_vcl", {"every_task": "False"}, "every_task = 'False' must be true or false"),
        ("ml_init_vcl", {"every_task": 0}, "every_task = 0 must be true or false"),
        ("ml_init_vcl", {"ml_epochs": "5"}, "ml_epochs = '5' must be a whole number"),
        ("ml_init_vcl", {"ml_epochs": -1}, "ml_epochs = -1 must be at least 0"),
        ("coreset_vcl", {"coreset_epochs": -1}, "coreset_epochs = -1 must be at least 0"),
        ("coreset_vcl", {"selection": 3}, "selection = 3 must be a string"),
        ("replay", {"buffer_size": 2.5}, "buffer_size = 2.5 must be a whole number"),
        ("replay", {"buffer_size": True}, "buffer_size = True must be a whole number"),
        ("lwf", {"strength": True}, "strength = True must be a number"),
        ("lwf", {"strength": -1.0}, "strength = -1.0 must be at least 0"),
        ("lwf", {"strength": float("nan")}, "strength = nan must be at least 0"),
        ("vogn", {"damping": -1e-3}, "damping = -0.001 must be at least 0"),
        ("vogn", {"damping": float("inf")}, "damping = inf must be a finite number"),
        ("lwf", {"temperature": float("inf")}, "temperature = inf must be a finite number"),
        ("vogn", {"beta1": "high"}, "beta1 = 'high' must be a number"),  # of the class it is from
    ],
)
def test_what_an_option_cannot_be_is_named(strategy, options, words, multi_head_stream):
    with pytest.raises(UserError, match=f"^options.{re.escape(words)}$"):
        made(multi_head_stream, strategy, **options)


def test_a_whole_number_is_a_number_and_none_of_something_is_allowed(multi_head_stream):
    assert made(multi_head_stream, "lwf", strength=0).strength == 0
    assert made(multi_head_stream, "vogn", damping=0).damping == 0
    assert made(multi_head_stream, "ml_init_vcl", ml_epochs=0, every_task=True).every_task
    check_types(Theirs, {"memory": None, "mode": "far", "sizes": "3", "anything": True})


@pytest.mark.parametrize(
    ("strategy", "options", "words"),
    [
        (Theirs, {"mode": "nearby"}, "mode = 'nearby' must be 'near' or 'far'"),
        (Theirs, {"memory": 0.5}, "memory = 0.5 must be a whole number"),
        (Derived, {"share": 0.5}, "share = 0.5 must be a string"),
        (Derived, {"memory": "0"}, "memory = '0' must be a whole number"),
    ],
)
def test_a_users_own_class_is_asked_for_its_annotations(strategy, options, words):
    with pytest.raises(UserError, match=words):
        check_types(strategy, options)


def test_what_has_no_annotation_or_one_of_no_meaning_is_let_through():
    check_types(Derived, {"mode": 3})
    check_types(Unknown, {"share": "much"})


def floats(strategy):
    annotations = {}
    for each in reversed(strategy.__mro__):
        annotations |= getattr(each.__init__, "__annotations__", {})
    return [key for key in own_options(strategy) if "float" in str(annotations.get(key))]


INFINITE = [(name, key) for name in built_in() for key in floats(find_strategy(name))]


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
@pytest.mark.parametrize(("name", "key"), INFINITE)
def test_no_option_of_a_method_of_the_suite_is_infinite(name, key, value):
    with pytest.raises(UserError, match=f"^options.{key} = {value} must be a finite number$"):
        check_types(find_strategy(name), {key: value})


def test_infinity_is_for_a_users_class_to_mean_and_not_for_what_it_inherits():
    check_types(Theirs, {"share": float("inf")})
    with pytest.raises(UserError, match=r"^options.strength = inf must be a finite number$"):
        check_types(DerivedFromLwF, {"share": float("inf"), "strength": float("inf")})
