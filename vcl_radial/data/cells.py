"""The cells of a table: plain numbers, missing values, and numbers as other programs write them.

A cell that may be a number, but not in plain ASCII, never counts as a text: a text would turn a
column of numbers into one input per value.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

NUMBER_WORDS: Final = frozenset({"inf", "infinity", "true", "false"})
"""Texts, in lower case, that are not names in a column that contains numbers."""

_PLAIN = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_MISSING = re.compile(
    r"|\?+|[.…]+|[+-]?(?i:nan)(?:\(\w*\))?|NA|N/A|n/a|N\.A\.|NaT|None|null|NULL|<NA>|\\N"
    r"|(?:[$€£¥]\s*)?[-–—−]+|#N/?A.*|#NV|#[^\s\d]+[!?]|#+|#DIV/0!|[+-]?1\.#[A-Z]+0*"
)

_BEFORE, _AFTER = r"[\s+\-–—−(%٪'’\"=]*", r"[\s\-–—−)%‰٪°'’\"]*"
_CURRENCY = (
    r"(?:[A-Z]{0,3}¤|EUR|USD|GBP|CHF|JPY|CNY|INR|AUD|CAD|BRL|SEK|NOK|DKK|PLN|CZK|RUB"
    r"|kr\.?|zł|Kč|Fr\.|Rs\.?)"
)
_DIGITS = (
    r"(?:\d{1,3}(?P<group>[.,'’ʼ`_\s٬])(?:\d{2,3}(?P=group))*\d{3}(?:[.,٫]\d*)?"
    r"|\d+(?:[.,٫·⁄]\d*)?|[.,٫·]\d+)(?:\s*(?:[ed]|×\s*10\^?|[x*]\s*10\^)\s*[+\-−]?\d+)?"
)
_WRITTEN = re.compile(
    rf"{_BEFORE}(?:{_CURRENCY}{_BEFORE})?(?:{_DIGITS}|0x[\da-f_]+|0b[01_]+|0o[0-7_]+)"
    rf"{_AFTER}(?:{_CURRENCY}{_AFTER})?"
    r"|[+\-−]\s*inf(?:inity)?|[+\-−]?∞",
    re.IGNORECASE,
)


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_AROUND = re.compile(r"#\s*[^\s\d#+\-/:_][^\d#]*|[^\W\d_]+\.?\s+#|.*[(\[{].*#.*[)\]}]")


def plain_number(text: str) -> float | None:
    """The number in a cell of ASCII digits, sign, point and exponent; None for other cells."""
    return float(text) if _PLAIN.fullmatch(text) else None


def is_missing(text: str) -> bool:
    """Whether a cell stands for a missing value."""
    return _MISSING.fullmatch(text) is not None


def may_be_number(text: str) -> bool:
    """Whether a locale, a spreadsheet or a programming language may write a number like this.

    In addition to digits, there may be separators of groups of three digits, a decimal mark and an
    exponent, surrounded by signs, brackets, spaces, a currency or a per cent sign.
    """
    normal = unicodedata.normalize("NFKC", text.replace("´", "'"))
    kinds = [(c, unicodedata.category(c)) for c in normal]
    bare = "".join("¤" if kind == "Sc" else c for c, kind in kinds if kind != "Cf")
    return _WRITTEN.fullmatch(bare) is not None


def words_around_numbers(texts: Iterable[str]) -> str | None:
    """The common text around one number in all texts, with `#` for the number; None without one.

    Numbers with a unit, a suffix, a currency or a call (`# kg`, `R #`, `tensor(#)`) are not texts.
    Codes such as `A7` or `10-20` are texts.
    """
    forms = {_NUMBER.sub("#", text) for text in texts}
    (form,) = forms if len(forms) == 1 else ("",)
    return form if _AROUND.fullmatch(form) else None
