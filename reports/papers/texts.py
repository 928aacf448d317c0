"""The texts of a figure: a TOML file beside its module, filled with the numbers of the figure.

    title, source       texts
    shown, notes        paragraphs
    [settings]          name = text
    [claims.KEY]        published, ours, because: texts
                        verdict, reason: of a claim that the setting cannot decide

Every text is a format string. The verdict of a claim follows from the rule of its key, which the
module computes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vcl_radial.metrics.verdicts import Verdict, verdict_of_statement
from vcl_radial.reporting.blocks import Claim


@dataclass(frozen=True)
class Undecided:
    """A rule for claims that a setting cannot decide; the page shows the reason and the result.

    Attributes:
        verdict: no evidence, or not comparable.
        reason: why the setting cannot decide.
        alike: whether the claim holds here nevertheless.
    """

    verdict: Verdict
    reason: str
    alike: bool


Rule: TypeAlias = bool | Verdict | Undecided
"""Whether a statement holds, a verdict of a test, or neither."""


def of_one_run(alike: bool) -> Undecided:
    """The rule for networks that are trained once: without a spread, no number decides a claim."""
    return Undecided(Verdict.NO_EVIDENCE, "one run of each method", alike)


def read(module: str) -> dict[str, Any]:
    """The TOML beside a module."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


def filled(texts: Any, numbers: Mapping[str, Any]) -> Any:
    """Texts, or tables and lists of texts, with the numbers; each number of a list is formatted."""
    shown = {k: _Several(v) if type(v) in (list, tuple) else v for k, v in numbers.items()}

    def fill_in(value: Any) -> Any:
        if isinstance(value, str):
            return value.format(**shown)
        if isinstance(value, list):
            return [fill_in(item) for item in value]
        if isinstance(value, dict):
            return {fill_in(key): fill_in(item) for key, item in value.items()}
        return value

    return fill_in(texts)


def fill(module: str, numbers: Mapping[str, Any], rules: Mapping[str, Rule]) -> dict[str, Any]:
    """The fields of `Findings` except tables.

    Args:
        module: the file of the module, beside which the texts lie.
        numbers: numbers by their names in the texts.
        rules: rules by the keys of the claims.

    Raises:
        KeyError: a number or a rule is missing.
    """
    texts = {"notes": [], "settings": {}, "claims": {}} | read(module)
    if extra := rules.keys() - texts["claims"].keys():
        raise KeyError(f"{module}: no claim {min(extra)}")
    fields = ("title", "source", "shown", "notes", "settings", "claims")
    texts = {field: filled(texts[field], numbers) for field in fields}
    claims = [_claim(claim, rules[key]) for key, claim in texts["claims"].items()]
    return texts | {"settings": [*texts["settings"].items()], "claims": claims}


def _claim(texts: Mapping[str, str], rule: Rule) -> Claim:
    because = texts.get("because", "")
    if "verdict" in texts:
        rule = Undecided(Verdict(texts["verdict"]), texts["reason"], bool(rule))
    if isinstance(rule, Undecided):
        failed = f"it does not hold{': ' if because else ''}{because}"
        seen = "it holds" if rule.alike else failed
        return Claim(texts["published"], texts["ours"], rule.verdict, f"{rule.reason}; here {seen}")
    verdict = rule if isinstance(rule, Verdict) else verdict_of_statement(rule)
    return Claim(texts["published"], texts["ours"], verdict, because)


class _Several(tuple[Any, ...]):
    """Numbers that a format string prints with commas between them."""

    def __format__(self, form: str) -> str:
        return ", ".join(format(value, form) for value in self)


def listed(form: str, values: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> str:
    """Keys and values in one form, such as `listed("{1:.2g} (D = {0})", {10: 0.5})`."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return ", ".join(form.format(*pair) for pair in pairs)
