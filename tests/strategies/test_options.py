"""Options of a recipe: of the type that a constructor names, and in their range."""

import re
import sys
from typing import TYPE_CHECKING, Any, Literal

import pytest
from scenarios import digits

from vcl_radial.errors import UserError
from vcl_radial.methods.options import check_options, signature_of
from vcl_radial.methods.registry import built_in, look_up
from vcl_radial.ranges import NotNegative, Positive
from vcl_radial.strategies import ContinualStrategy
from vcl_radial.strategies.lwf import LwF
from vcl_radial.strategies.registry import find_strategy
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.continual.training import make_network, make_strategy

if TYPE_CHECKING:
    from nowhere import Nothing


def made(strategy, **options):
    posterior = {"ml_init_vcl": "radial", "coreset_vcl": "radial"}.get(strategy, "none")
    recipe = Recipe(strategy=strategy, posterior=posterior, hidden=[8], options=options)
    return make_strategy(recipe, make_network(digits(), recipe))


def check_types(strategy, options):
    check_options(strategy.__name__, signature_of(strategy), options)


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
        ("ml_init_vcl", {"ml_epochs": "5"}, "ml_epochs = '5' must be a whole number of at least 0"),
        ("ml_init_vcl", {"ml_epochs": -1}, "ml_epochs = -1 must be a whole number of at least 0"),
        (
            "coreset_vcl",
            {"coreset_epochs": -1},
            "coreset_epochs = -1 must be a whole number of at least 0",
        ),
        ("coreset_vcl", {"selection": 3}, "selection = 3 must be 'random' or 'k-centre'"),
        ("replay", {"buffer_size": 2.5}, "buffer_size = 2.5 must be a whole number of at least 1"),
        (
            "replay",
            {"buffer_size": True},
            "buffer_size = True must be a whole number of at least 1",
        ),
        ("lwf", {"strength": True}, "strength = True must be a number of at least 0"),
        ("lwf", {"strength": -1.0}, "strength = -1.0 must be a number of at least 0"),
        ("lwf", {"strength": float("nan")}, "strength = nan must be a finite number"),
        ("vogn", {"damping": -1e-3}, "damping = -0.001 must be a number of at least 0"),
        ("vogn", {"damping": float("inf")}, "damping = inf must be a finite number"),
        ("lwf", {"temperature": float("inf")}, "temperature = inf must be a finite number"),
        # Of the class that it is derived from.
        ("vogn", {"beta1": "high"}, "beta1 = 'high' must be a number of at least 0 and below 1"),
    ],
)
def test_what_an_option_cannot_be_is_named(strategy, options, words):
    with pytest.raises(UserError, match=f"^options.{re.escape(words)}$"):
        made(strategy, **options)


def test_a_whole_number_is_a_number_and_none_of_something_is_allowed():
    assert made("lwf", strength=0).strength == 0
    assert made("vogn", damping=0).damping == 0
    assert made("ml_init_vcl", ml_epochs=0, every_task=True).every_task
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
    check_types(Unknown, {"share": 0.5, "what": "much"})


INFINITE = [
    (name, key)
    for name in built_in()
    for key, (parameter, _) in signature_of(find_strategy(name)).options.items()
    if "float" in str(parameter.annotation)
]


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
@pytest.mark.parametrize(("name", "key"), INFINITE)
def test_no_option_of_a_method_of_the_suite_is_infinite(name, key, value):
    with pytest.raises(UserError, match=f"^options.{key} = {value} must be a finite number$"):
        check_types(find_strategy(name), {key: value})


def test_infinity_is_for_a_users_class_to_mean_and_not_for_what_it_inherits():
    check_types(Theirs, {"share": float("inf")})
    with pytest.raises(UserError, match=r"^options.strength = inf must be a finite number$"):
        check_types(DerivedFromLwF, {"share": float("inf"), "strength": float("inf")})


@pytest.mark.parametrize("name", built_in())
def test_the_source_of_a_method_says_of_its_options_what_the_class_says(name):
    signature = look_up(name)
    assert signature == signature_of(find_strategy(name))
    assert not signature.opaque


SOURCES = """
from typing import Any, Literal, Optional
import vcl_radial.strategies as suite
from vcl_radial.methods.base import Method
from vcl_radial.strategies import ContinualStrategy
from vcl_radial.strategies.lwf import LwF as Base

if True:
    class Plain(Base):
        share: float = 0.5
        def __init__(self, *, near: Literal["a", "b"] = "a", far: Optional[int] = None,
                     size: "int | str" = 3, other: list[int] | None = None, **settings):
            super().__init__(**settings)

class ByModule(suite.ContinualStrategy):
    recipe_keys = frozenset({"prior_scale"})
    def __init__(self, *, memory: int, prior_scale=1.0, **settings):
        settings["eval_samples"] = 1
        super().__init__(**settings)

class Takes(ContinualStrategy):
    def __init__(self, **settings):
        self.memory = settings.pop("memory", 5)
        super().__init__(**settings)

class Fixes(Plain):
    def __init__(self, **settings):
        super().__init__(near="b", **settings)

Made = type("Made", (Plain,), {})

class Wide(Plain, metaclass=type):
    pass

class MakesNothing(ContinualStrategy):
    def __init__(self, *, strength=1.0, **settings):
        self.strength, self.old = strength, {}

class PassesOnByPosition(ContinualStrategy):
    def __init__(self, *, strength=1.0, **settings):
        super().__init__(settings)

class PassesNothingOn(ContinualStrategy):
    def __init__(self, *, strength=1.0, **settings):
        super().__init__()

class PassesItsOwnOn(ContinualStrategy):
    def __init__(self, *, strength=1.0, **settings):
        super().__init__(strength=strength, **settings)

class PassesItselfOn(ContinualStrategy):
    def __init__(self, *, strength=1.0, **settings):
        super().__init__(self, **settings)

class PassesTwice(ContinualStrategy):
    def __init__(self, **settings):
        super().__init__(model=None, **settings)

class IsDerived(PassesNothingOn):
    def __init__(self, *, more=1.0, **settings):
        super().__init__(**settings)

class TakesNoSettings(ContinualStrategy):
    def __init__(self, *, strength=1.0):
        super().__init__(strength=strength)

class Bare(Method):
    def __init__(self, network, *, likelihood=None, penalty_weight=1.0, loss_value=True):
        super().__init__(network)
"""
PASS_ON = "take **settings and pass them on by super().__init__(**settings)"
BY_POSITION = f"passes on by position what the class it is derived from takes by name: {PASS_ON}"
SLIPS = {
    "MakesNothing": "does not make the strategy: begin it with super().__init__(**settings)",
    "PassesOnByPosition": BY_POSITION,
    "PassesItselfOn": BY_POSITION,
    "TakesNoSettings": f"takes no 'model': {PASS_ON}",
    "Bare": "takes no 'eval_samples': take **settings and pass them on by "
    "super().__init__(network, **settings)",
    "PassesNothingOn": f"does not pass 'model' on: {PASS_ON}",
    "IsDerived": f"does not pass 'model' on: {PASS_ON}",
    "PassesItsOwnOn": "passes 'strength' on, which the class it is derived from does not take: pass"
    " on no more than super().__init__(**settings)",
    "PassesTwice": "passes 'model' on twice: **settings has it already",
}
"""What a constructor does wrong with what a run gives to every method, by its class."""


@pytest.fixture
def sources(user_module):
    user_module("theirs_in_a_file", SOURCES)
    yield lambda name: look_up(f"theirs_in_a_file:{name}")
    assert "theirs_in_a_file" not in sys.modules


def test_a_users_class_is_read_from_its_file_through_the_classes_it_is_from(sources):
    annotations = {key: p.annotation for key, (p, _) in sources("Plain").options.items()}
    assert annotations == {
        "near": Literal["a", "b"],
        "far": int | None,
        "size": int | str,
        "other": Any,
        "strength": NotNegative,
        "temperature": Positive,
    }
    assert sources("ByModule").recipe_keys == {"prior_scale"}
    assert list(sources("ByModule").options) == ["memory"]


def test_what_a_source_leaves_open_is_left_to_the_class(sources):
    assert sources("Made") is None
    assert sources("Wide") is None
    check_options("Takes", sources("Takes"), {"memory": 3})


def test_an_option_that_a_class_fixes_for_the_one_it_is_from_is_none_of_its_own(sources):
    with pytest.raises(UserError, match=r"unknown option 'near' .*the nearest is 'far'"):
        check_options("Fixes", sources("Fixes"), {"near": "a"})


@pytest.mark.parametrize("name", SLIPS)
def test_a_constructor_that_keeps_settings_to_itself_is_named_with_the_mend(name, sources):
    with pytest.raises(UserError) as error:
        check_options("x", sources(name), {})
    place = {"IsDerived": "PassesNothingOn"}.get(name, name)
    words = f"{place}.__init__ (theirs_in_a_file.py) {SLIPS[name]}"
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 3, "memory": 1}, "options.batch_size is no option: a run gives batch_size"),
        ({"memry": 3}, "unknown option 'memry' of strategy = 'x': its only option is 'memory'"),
        ({}, "strategy = 'x' wants options.memory, which the recipe does not have"),
        ({"memory": None}, "options.memory = None must be a whole number"),
    ],
)
def test_what_options_lack_or_have_too_much_is_named_with_the_mend(sources, options, words):
    with pytest.raises(UserError, match=f"^{re.escape(words)}"):
        check_options("x", sources("ByModule"), options, above=Recipe.model_fields)
