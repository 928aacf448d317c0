"""Modules whose state names their kind, and which reject a state of another kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from vcl_radial.errors import UserError

_POINTS = "point estimates"


class ModuleWithKind(nn.Module):
    """A module whose state names its kind; a module of another kind rejects the state.

    Raises (from `load_state_dict`):
        UserError: The state is of another kind, or names none.
    """

    @property
    def kind(self) -> str:
        """The description of the kind in messages."""
        raise NotImplementedError

    def get_extra_state(self) -> dict[str, Any]:
        """The kind; part of the state dict."""
        return {"kind": self.kind}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Ignore the state of `get_extra_state`, which loading has checked."""

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *arguments: Any) -> None:
        if any(key.startswith(prefix) for key in state):  # PyTorch reports a missing state
            _check(prefix, _kind(state, prefix) or "an unnamed posterior", self.kind)
        super()._load_from_state_dict(state, prefix, *arguments)


class LayerWithKind(nn.Module):
    """A layer with a posterior or with point estimates, which rejects a state of the other kind.

    Raises (from `load_state_dict`):
        UserError: The state is of the other kind, or of another posterior.
    """

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *arguments: Any) -> None:
        expected = getattr(getattr(self, "weights", None), "kind", _POINTS)
        points = _POINTS if f"{prefix}weight" in state else None
        _check(prefix, _kind(state, f"{prefix}weights.") or points or expected, expected)
        super()._load_from_state_dict(state, prefix, *arguments)


def _kind(state: Mapping[str, Any], prefix: str) -> Any:
    """The kind in the state of the module with this prefix; None if the state names no kind."""
    extra = state.get(f"{prefix}_extra_state")
    return extra.get("kind") if isinstance(extra, Mapping) else None


def _check(prefix: str, kind: Any, expected: str) -> None:
    if kind != expected:
        raise UserError(
            f"is of {kind}, and the network has {expected}: load it into a network like the one "
            "that it is of",
            at=f"the state of {prefix.rstrip('.') or 'the weights'}",
        )
