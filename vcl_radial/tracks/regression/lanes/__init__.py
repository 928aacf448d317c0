"""Methods that train many splits as lanes of one program: one module per method, by its name.

Its `LANE` says which runs can be lanes; `predict` trains the lanes of a `Job` and returns their
predictive `Mixture`. If their posterior can be carried to the next slice of the data,
`predict_in_sequence` returns a mixture after each slice, and the bytes that each lane carries.
Every other run trains alone, slice by slice. A job holds no test targets, so that no method can be
chosen or trained by them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Lane:
    """Abilities of a method's lanes.

    Attributes:
        posteriors: supported posteriors of the weights.
        options: supported options of the method.
        fixed: options of the method with their only supported value, which is this track's default.
        alike: keys of the recipe and options that lanes of one program share, besides the shared
            keys of `vcl_radial.tracks.regression.settings`.
        carried: whether the posterior can be carried to the next slice.
        has_kl: whether the objective has a KL, which `kl_weight` weighs.
        step_cost: fixed cost of a step relative to the usual one; 0 without steps.
    """

    posteriors: Collection[str] = ("none",)
    options: Collection[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    alike: Collection[str] = ()
    carried: bool = False
    has_kl: bool = False
    step_cost: float = 1.0

    def serves(self, posterior: str, options: Mapping[str, Any]) -> bool:
        """Whether a run with this posterior and these options can be a lane."""
        fixed = {k: v for k, v in options.items() if k not in self.options}
        return posterior in self.posteriors and {**self.fixed, **fixed} == {**self.fixed}


def names() -> list[str]:
    """The methods that have lanes."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


@cache
def find(strategy: str) -> Lane | None:
    """Abilities of a method's lanes; None if it has no lanes."""
    return module(strategy).LANE if strategy in names() else None


def module(strategy: str) -> Any:
    """Import the module with `predict`."""
    return importlib.import_module(f"{__name__}.{strategy}")
