"""Methods as Avalanche strategies: `from vcl_radial.strategies.vcl import VCL`.

`vcl_radial.strategies.NAME` is made of `vcl_radial.methods.NAME`, so that a method is one file.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vcl_radial.lazy import attributes
from vcl_radial.methods.registry import built_in, built_in_class

if TYPE_CHECKING:
    from vcl_radial.strategies.base import ContinualStrategy, Strategy
    from vcl_radial.strategies.scores import Scores
    from vcl_radial.strategies.task_model import TaskModel

__all__ = ["ContinualStrategy", "Scores", "Strategy", "TaskModel"]
__getattr__ = attributes(__name__)


class _Strategies(MetaPathFinder, Loader):
    """Finds the module of a method's strategy."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        parent, _, method = name.rpartition(".")
        if parent != __name__ or method not in built_in():
            return None
        return spec_from_loader(name, self)

    def exec_module(self, module: ModuleType) -> None:
        from vcl_radial.strategies.registry import strategy_of

        method: Any = built_in_class(module.__name__.rpartition(".")[2])
        module.__doc__ = sys.modules[method.__module__].__doc__
        vars(module)[method.__name__] = strategy_of(method)


sys.meta_path.append(_Strategies())
