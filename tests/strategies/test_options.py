"""Options of a recipe: of the type that a constructor names, and in their range."""

import functools
import inspect
from typing import TYPE_CHECKING, Any, Literal, Optional

import pytest
from avalanche.training.templates import SupervisedTemplate
from failing import refuses
from learners import strategy_class
from scenarios import digits, network, posterior_for

from vcl_radial.config.ranges import Count, NotNegative, Positive, Share
from vcl_radial.errors import UserError
from vcl_radial.integrations.avalanche import ContinualStrategy
from vcl_radial.integrations.avalanche.methods import LwF
from vcl_radial.methods.base import Method
from vcl_radial.methods.options import check_method_options, common_keys, options_of
from vcl_radial.methods.registry import built_in, built_in_class, find_method
from vcl_radial.tracks.continual.methods import make_strategy
from vcl_radial.tracks.continual.networks import make_network
from vcl_radial.tracks.continual.settings import Recipe

if TYPE_CHECKING:
    from nowhere import Nothing


def made(strategy, **options):
    posterior = {"ml_init_vcl": "radial", "coreset_vcl": "radial"}.get(strategy, "none")
    recipe = Recipe(strategy=strategy, posterior=posterior, hidden=[8], options=options)
    return make_strategy(recipe, make_network(digits(), recipe))


def check_types(strategy, options):
    check_method_options(strategy.__name__, strategy, options)


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
    ("strategy", "options", "must_be"),
    [
        ("ml_init_vcl", {"every_task": "False"}, "true or false"),
        ("ml_init_vcl", {"every_task": 0}, "true or false"),
        ("ml_init_vcl", {"ml_epochs": "5"}, "a whole number of at least 0"),
        ("ml_init_vcl", {"ml_epochs": -1}, "a whole number of at least 0"),
        ("coreset_vcl", {"coreset_epochs": -1}, "a whole number of at least 0"),
        ("coreset_vcl", {"selection": 3}, "'random' or 'k-centre'"),
        ("replay", {"buffer_size": 2.5}, "a whole number of at least 1"),
        ("replay", {"buffer_size": True}, "a whole number of at least 1"),
        ("lwf", {"strength": True}, "a number of at least 0"),
        ("lwf", {"strength": -1.0}, "a number of at least 0"),
        ("lwf", {"strength": float("nan")}, "a finite number"),
        ("vogn", {"damping": -1e-3}, "a number of at least 0"),
        ("vogn", {"damping": float("inf")}, "a finite number"),
        ("lwf", {"temperature": float("inf")}, "a finite number"),
        # Of the class that it is derived from.
        ("vogn", {"beta1": "high"}, "a number of at least 0 and below 1"),
    ],
)
def test_what_an_option_cannot_be_is_named(strategy, options, must_be):
    ((key, value),) = options.items()
    with pytest.raises(UserError) as caught:
        made(strategy, **options)
    assert str(caught.value) == f"options.{key} = {value!r} must be {must_be}"


def test_a_whole_number_is_a_number_and_none_of_something_is_allowed():
    assert made("lwf", strength=0).strength == 0
    assert made("vogn", damping=0).damping == 0
    assert made("ml_init_vcl", ml_epochs=0, every_task=True).every_task
    check_types(Theirs, {"memory": None, "mode": "far", "sizes": "3", "anything": True})


@pytest.mark.parametrize(
    ("strategy", "options", "named"),
    [
        (Theirs, {"mode": "nearby"}, ["mode = 'nearby'", "'near' or 'far'"]),
        (Theirs, {"memory": 0.5}, ["memory = 0.5", "whole number"]),
        (Derived, {"share": 0.5}, ["share = 0.5", "string"]),
        (Derived, {"memory": "0"}, ["memory = '0'", "whole number"]),
    ],
)
def test_a_users_own_class_is_asked_for_its_annotations(strategy, options, named):
    with refuses(*named):
        check_types(strategy, options)


def test_what_has_no_annotation_or_one_of_no_meaning_is_let_through():
    check_types(Derived, {"mode": 3})
    check_types(Unknown, {"share": 0.5, "what": "much"})


NUMBERS = [
    (name, key)
    for name in built_in()
    for key, parameter in options_of(built_in_class(name)).items()
    if "float" in str(parameter.annotation)
]


def test_no_option_of_a_method_of_the_suite_is_infinite():
    assert len(NUMBERS) > 20
    for name, key in NUMBERS:
        for value in (float("inf"), float("-inf")):
            with refuses(f"options.{key} = {value}", "finite"):
                check_types(built_in_class(name), {key: value})


def test_infinity_is_for_a_users_class_to_mean_and_not_for_what_it_inherits():
    check_types(Theirs, {"share": float("inf")})
    with refuses("options.strength = inf", "finite"):
        check_types(DerivedFromLwF, {"share": float("inf"), "strength": float("inf")})


def test_a_strategy_has_the_options_of_its_method():
    for name in built_in():
        assert options_of(strategy_class(name)) == options_of(built_in_class(name)), name


def test_what_every_method_and_strategy_takes_is_no_option():
    of_avalanche = inspect.signature(SupervisedTemplate.__init__).parameters.keys()
    of_strategies = inspect.signature(ContinualStrategy).parameters.keys()
    of_methods = inspect.signature(Method).parameters.keys()
    taken = {*of_avalanche, *of_strategies, *of_methods} - {"self", "settings", "kwargs"}
    assert common_keys() == taken
    assert options_of(ContinualStrategy) == options_of(Method) == {}


@pytest.mark.parametrize("name", built_in())
def test_a_method_is_made_with_the_default_of_each_of_its_options(name):
    cls = built_in_class(name)
    assert options_of(cls).keys().isdisjoint(common_keys())
    defaults = {key: p.default for key, p in options_of(cls).items()}
    check_method_options(name, cls, defaults)
    cls(network(posterior_for(name)), **defaults)


class Plain(LwF):
    share: float = 0.5

    def __init__(
        self,
        *,
        near: Literal["a", "b"] = "a",
        far: Optional[int] = None,  # noqa: UP045
        size: "int | str" = 3,
        other: list[int] | None = None,
        **settings,
    ):
        super().__init__(**settings)


class NeedsMemory(ContinualStrategy):
    recipe_keys = frozenset({"prior_scale"})

    def __init__(self, *, memory: int, prior_scale=1.0, **settings):
        super().__init__(**settings)


class Fixes(Plain):
    fixed_options = frozenset({"near"})

    def __init__(self, **settings):
        super().__init__(near="b", **settings)


def with_share(cls):
    """A decorator that puts a subclass with one more option in the place of a class."""

    class Wider(cls):
        def __init__(self, network, *, share: Share = 0.5, **settings):
            super().__init__(network, **settings)
            self.share = share

    return Wider


def logged(constructor):
    """A decorator of a constructor, which shows the parameters of what it wraps."""

    @functools.wraps(constructor)
    def wrapper(self, *args, **settings):
        constructor(self, *args, **settings)

    return wrapper


@with_share
class Decorated(Method):
    @logged
    def __init__(self, network, *, memory: Count = 5, **settings):
        super().__init__(network, **settings)


def test_the_options_of_a_class_are_those_of_the_classes_it_is_derived_from_too():
    annotations = {key: p.annotation for key, p in options_of(Plain).items()}
    assert annotations == {
        "near": Literal["a", "b"],
        "far": int | None,
        "size": int | str,
        "other": Any,
        "strength": NotNegative,
        "temperature": Positive,
    }
    assert list(options_of(NeedsMemory)) == ["memory"]


def test_a_decorated_class_has_the_options_that_it_takes():
    assert {key: p.annotation for key, p in options_of(Decorated).items()} == {
        "share": Share,
        "memory": Count,
    }
    made = Decorated(network(None), share=1, memory=3)
    assert made.share == 1
    with refuses("options.share = 2", "from 0 to 1"):
        check_types(Decorated, {"share": 2})


def test_an_option_that_a_class_fixes_for_the_one_it_is_from_is_none_of_its_own():
    with refuses("'near'", "nearest is 'far'"):
        check_method_options("Fixes", Fixes, {"near": "a"})


class TakesNoSettings(ContinualStrategy):
    def __init__(self, *, strength=1.0):
        super().__init__(strength=strength)


class Bare(Method):
    def __init__(self, network, *, likelihood=None, kl_weight=1.0, loss_value=True):
        super().__init__(network)


@pytest.mark.parametrize("cls", [TakesNoSettings, Bare])
def test_a_constructor_that_does_not_take_what_every_run_gives_is_named_with_the_fix(cls):
    with refuses(f"{cls.__name__}.__init__ (test_options.py)", "**settings)"):
        check_method_options("x", cls, {})


class MakesNothing(ContinualStrategy):
    def __init__(self, *, strength=1.0, **settings):
        self.strength, self.old = strength, {}


class MakesNoMethod(Method):
    def __init__(self, network, **settings):
        self.old = {}


class PassesOnByPosition(ContinualStrategy):
    def __init__(self, **settings):
        super().__init__(settings)


class PassesNothingOn(ContinualStrategy):
    def __init__(self, **settings):
        super().__init__()


class PassesItsOwnOn(ContinualStrategy):
    def __init__(self, *, strength=1.0, **settings):
        super().__init__(strength=strength, **settings)


class PassesTwice(ContinualStrategy):
    def __init__(self, **settings):
        super().__init__(model=None, **settings)


FAULTY = [MakesNothing, MakesNoMethod, PassesOnByPosition, PassesNothingOn, PassesItsOwnOn]


@pytest.mark.parametrize("cls", [*FAULTY, PassesTwice])
def test_a_constructor_that_fails_is_named_where_the_method_is_made(cls):
    with refuses(cls.__name__):
        made(f"{__name__}:{cls.__name__}")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"batch_size": 3, "memory": 1}, ["options.batch_size"]),
        ({"memry": 3}, ["'memry'", "strategy = 'x'", "'memory'"]),
        ({}, ["strategy = 'x'", "options.memory"]),
        ({"memory": None}, ["options.memory = None"]),
        ({"a": 1, "b": 1}, ["'a'", "'b'", "'memory'"]),
    ],
)
def test_what_options_lack_or_have_too_much_is_named_with_the_fix(options, named):
    with refuses(*named):
        check_method_options("x", NeedsMemory, options, recipe_keys=Recipe.model_fields)


class TakesNoExperience(ContinualStrategy):
    def consolidate(self):
        """Nothing."""


class TakesNoNumber(Method):
    def predict(self, x, task=None):
        return super().predict(x, task)


class RenamesThem(Method):
    def predict(self, inputs, heads=0, **more):
        return super().predict(inputs, heads, **more)

    def begin_task(self, *args):
        super().begin_task(*args)

    def helper(self, anything):
        """None of the suite's."""


@pytest.mark.parametrize(
    ("cls", "needed"),
    [
        (TakesNoExperience, "define it as consolidate(self, experience)"),
        (
            TakesNoNumber,
            "define it as predict(self, x, task=0, *, number=None, differentiable=",
        ),
    ],
)
def test_an_override_that_cannot_be_called_as_the_suite_calls_it_is_named(cls, needed):
    with refuses(needed):
        find_method(f"{__name__}:{cls.__name__}")


def test_an_override_may_name_its_arguments_otherwise():
    assert find_method(f"{__name__}:RenamesThem") is RenamesThem
