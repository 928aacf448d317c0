"""The figures there are, page by page; known without importing anything heavy."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from vcl_radial import papers
from vcl_radial.described import described, module_of
from vcl_radial.errors import UserError
from vcl_radial.source import Absent, NotReadable, definition


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


def methods_of(figure: str) -> list[str]:
    """The names of a figure's `RUN_METHODS`, where it is made of runs; by its source."""
    try:
        node: Any = definition(figures()[figure].module_of(figure), "RUN_METHODS")
    except (Absent, NotReadable):
        return []
    return list(ast.literal_eval(node.value))


def check_options(
    names: Sequence[str], methods: Sequence[str], settings: Mapping[str, Any]
) -> None:
    """See that figures have the methods and take the settings of a command.

    Raises:
        UserError: one has not or does not.
    """
    for name in names:
        known = methods_of(name)
        if settings and not known:
            raise UserError(f"--set {next(iter(settings))}: {name} has no settings")
        for method in methods:
            if method not in known:
                has = ", ".join(known) or "no methods"
                raise UserError(f"--method {method}: {name} has {has}")
        if known:
            package = module_of(papers.__name__, figures()[name].name)
            track = import_module(module_of(package, "track"))
            track.runs_of(name, methods or known, [0], settings)
