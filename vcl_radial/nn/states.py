"""States that name what they are of, so that one of another kind is not taken for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from vcl_radial.errors import UserError

_POINTS = "point estimates"


class OfAKind(nn.Module):
    """A module whose state names its kind and is refused by a module of another kind.

    Raises (from `load_state_dict`):
        UserError: the state is of another kind, or names none.
    """

    @property
    def kind(self) -> str:
        """What it is, in words."""
        raise NotImplementedError

    def get_extra_state(self) -> dict[str, Any]:
        """The kind; part of the state dict."""
        return {"kind": self.kind}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over what `get_extra_state` gave."""

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *others: Any) -> None:
        if any(key.startswith(prefix) for key in state):  # or it is missing, which PyTorch sees
            _check(prefix, _kind(state, prefix) or "an unnamed posterior", self.kind)
        super()._load_from_state_dict(state, prefix, *others)


class LayerOfAKind(nn.Module):
    """A layer with a posterior, or with point estimates, which refuses the state of the other.

    Raises (from `load_state_dict`):
        UserError: the state is of the other, or of another posterior.
    """

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *others: Any) -> None:
        own = getattr(getattr(self, "weights", None), "kind", _POINTS)
        points = _POINTS if f"{prefix}weight" in state else None
        _check(prefix, _kind(state, f"{prefix}weights.") or points or own, own)
        super()._load_from_state_dict(state, prefix, *others)


def _kind(state: Mapping[str, Any], prefix: str) -> Any:
    """What the state of the module with this prefix is of; None where it does not say."""
    extra = state.get(f"{prefix}_extra_state")
    return extra.get("kind") if isinstance(extra, Mapping) else None


def _check(prefix: str, kind: Any, own: str) -> None:
    if kind != own:
        raise UserError(
            f"is of {kind}, and the network has {own}: load it into a network like the one that "
            "it is of",
            at=f"the state of {prefix.rstrip('.') or 'the weights'}",
        )
