"""The fonts of all figures: one for Latin letters, and others for the letters that it lacks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from unicodedata import east_asian_width

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

from vcl_radial.errors import visible

LATIN = "DejaVu Sans"
"""Shipped with matplotlib: the same on every machine."""

CJK = (
    *(f"Noto Sans CJK {region}" for region in ("SC", "TC", "HK", "JP", "KR")),
    *(f"Noto Sans {region}" for region in ("SC", "TC", "HK", "JP", "KR")),
    *("Source Han Sans", "Source Han Sans SC", "Source Han Sans CN", "Source Han Sans TC"),
    *("Source Han Sans JP", "Source Han Sans K", "Source Han Sans KR"),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    *("PingFang SC", "PingFang TC", "Hiragino Sans GB", "Hiragino Sans", "Apple SD Gothic Neo"),
    *("Heiti TC", "AppleGothic", "Arial Unicode MS"),
    *("Microsoft YaHei", "SimHei", "Microsoft JhengHei", "Yu Gothic", "Meiryo", "MS Gothic"),
    *("Malgun Gothic", "IPAexGothic", "IPAGothic", "TakaoPGothic", "VL Gothic"),
    *("NanumGothic", "UnDotum", "Baekmuk Dotum"),
)
"""Families with Chinese, Japanese or Korean letters: of Linux, macOS and Windows."""

_WIDE = 1.75  # Latin letters that are as wide as one of those
_reported: set[str] = set()


def families() -> list[str]:
    """The installed families; a letter is drawn in the first one that has it."""
    installed = {font.name for font in fontManager.ttflist}
    return [LATIN, *(name for name in CJK if name in installed)]


def letters(text: str) -> float:
    """The width of a text in Latin letters."""
    return sum(_WIDE if east_asian_width(letter) in "WF" else 1.0 for letter in text)


def report_missing(texts: Iterable[str], names: Sequence[str]) -> None:
    """Print one line, once in a process, if no font has a letter of the texts.

    Args:
        texts: texts that are drawn.
        names: the families that they are drawn in.
    """
    if _reported:
        return
    shown = (letter for text in texts for letter in text if letter.isprintable())
    lacking = [letter for letter in dict.fromkeys(shown) if not _has(letter, tuple(names))]
    if lacking:
        _reported.update(lacking)
        print(
            f"vcl-radial: no installed font has {visible(''.join(lacking[:8]))}: pictures show "
            "boxes there; install one that has these letters, such as Noto Sans CJK, and delete "
            f"matplotlib's list of fonts, {mpl.get_cachedir()}/fontlist-*.json",
            file=sys.stderr,
        )


@cache
def _has(letter: str, names: tuple[str, ...]) -> bool:
    """Whether one of the families has a letter."""
    paths = (findfont(FontProperties(family=[name])) for name in names)
    return any(get_font(path).get_char_index(ord(letter)) for path in paths)
