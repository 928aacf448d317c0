"""The figures there are, page by page; known without importing anything heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from vcl_radial import papers
from vcl_radial.described import described, module_of


@dataclass(frozen=True)
class Page:
    """The figures of one package.

    Attributes:
        name: of the package.
        title: of the page.
        introduction: to stand below it.
        folder: where the page goes unless another is named.
        figures: what each figure shows, by its name.
    """

    name: str
    title: str
    introduction: str
    folder: Path
    figures: Mapping[str, str]

    def module_of(self, figure: str) -> str:
        """The module that computes a figure."""
        return module_of(module_of(papers.__name__, self.name), figure)


@lru_cache(maxsize=1)
def pages() -> dict[str, Page]:
    """The pages by name."""
    found = {}
    for module in iter_modules(papers.__path__):
        if module.ispkg:
            package = import_module(module_of(papers.__name__, module.name))
            title, _, introduction = (package.__doc__ or "").partition("\n")
            found[module.name] = Page(
                module.name,
                title.rstrip("."),
                " ".join(introduction.split()),
                Path(package.FOLDER),
                described(Path(package.__path__[0]), "analyse"),
            )
    return {name: page for name, page in found.items() if page.figures}


def figures() -> dict[str, Page]:
    """The page of every figure, by the name of the figure."""
    return {figure: page for page in pages().values() for figure in page.figures}


def members(word: str) -> list[str]:
    """The figures that a word of the command line stands for: all, those of a page, or one.

    Raises:
        LookupError: it stands for none.
    """
    if word == "all":
        return list(figures())
    if word in pages():
        return list(pages()[word].figures)
    if word not in figures():
        raise LookupError(word)
    return [word]
