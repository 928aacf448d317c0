"""A key of a recipe is declared once, with its default, its meaning and its traits.

    kl_weight: NotNegative = Key(1.0, "factor of the KL; 1 is the ELBO", lanes="may differ")

Lanes, digests and the catalogue select keys with `declared`. A class that overrides the default of
an inherited key, `prior_scale: Positive = 0.1`, keeps the rest of its declaration.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


def Key(  # noqa: N802 (as pydantic's `Field`, which it is)
    default: Any,
    meaning: str,
    *,
    lanes: Literal["alike", "may differ"] = "alike",
    of: Literal["method", "training"] = "training",
    digest: Literal["always", "unless default"] = "always",
) -> Any:
    """Declare a key of a recipe.

    Args:
        default: the value of recipes without the key.
        meaning: description of the key, with its unit.
        lanes: whether runs that train as lanes of one program may differ in the key.
        of: "method" for a key that defines a method in every track, "training" for a key that sets
            how a track trains the method. A shipped method without a file for a track takes only
            keys of "method" from its file for task sequences.
        digest: "unless default" for a key that was added after results were stored: at the default,
            their digest does not change.
    """
    extra: dict[str, Any] = {"lanes": lanes, "of": of, "digest": digest}
    return Field(default=default, description=meaning, json_schema_extra=extra)


def declared(model: type[BaseModel], **traits: str) -> set[str]:
    """The keys of a model with these traits, as in `declared(Recipe, lanes="may differ")`."""
    declarations: dict[str, Any] = {}
    for cls in reversed(model.__mro__):
        for name, field in getattr(cls, "model_fields", {}).items():
            if isinstance(field.json_schema_extra, dict):
                declarations[name] = field.json_schema_extra
    return {name for name, extra in declarations.items() if traits.items() <= extra.items()}


def at_default(settings: BaseModel) -> set[str]:
    """The keys that a digest leaves out, as they have the default that older results have."""
    fields = type(settings).model_fields
    return {
        name
        for name in declared(type(settings), digest="unless default")
        if getattr(settings, name) == fields[name].get_default(call_default_factory=True)
    }
