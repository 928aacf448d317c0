"""The Avalanche strategy of a method."""

from __future__ import annotations

from functools import cache
from typing import Any

from vcl_radial import methods, strategies
from vcl_radial.methods.base import Method
from vcl_radial.methods.registry import find_method
from vcl_radial.strategies.base import TRAITS, ContinualStrategy
from vcl_radial.strategies.parameters import keywords, showing


def find_strategy(name: str) -> Any:
    """The strategy that a recipe calls `strategy = "name"`; see `find_method`.

    Raises:
        UserError: there is none, or it cannot be imported.
    """
    cls: Any = find_method(name)
    return cls if issubclass(cls, ContinualStrategy) else strategy_of(cls)


@cache
def strategy_of(method: Any) -> type[ContinualStrategy]:
    """The class of a method, a subclass of `Method`, as that of a strategy.

    It makes the method of the model that it is given, and is derived from the strategies of the
    methods that its own is derived from.
    """
    constructors = [vars(each)["__init__"] for each in method.__mro__ if "__init__" in vars(each)]
    taken = {name for each in constructors for name in keywords(each)}

    @showing(*constructors)
    def constructor(self: ContinualStrategy, *, model: Any, **settings: Any) -> None:
        # Avalanche's templates refuse what their own constructors do not name.
        of_method = {name: settings.pop(name) for name in taken & settings.keys()}
        made = model if isinstance(model, Method) else method(model, **of_method)
        ContinualStrategy.__init__(self, model=made, **settings)

    members: dict[str, Any] = {trait: getattr(method, trait) for trait in TRAITS}
    members |= {"__init__": constructor, "__doc__": method.__doc__, "method_class": method}
    members["__module__"] = method.__module__.replace(methods.__name__, strategies.__name__)
    parent = method.__mro__[1]
    base = ContinualStrategy if parent is Method else strategy_of(parent)
    return type(method.__name__, (base,), members)
