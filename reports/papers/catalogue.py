"""The figures of the papers, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

from reports.papers.analysis import Setting
from reports.seeds.pruning.track import runs_of
from vcl_radial.errors import UserError
from vcl_radial.system.quiet import quiet

PAGES = {
    "badam": "reports.seeds.badam",
    "pruning": "reports.seeds.pruning",
    "radial": "reports.analysis",
    "rdp": "reports.seeds.rdp",
}
"""The package of every page, by the name of the page."""


@dataclass(frozen=True)
class Page:
    """The figures of one package.

    Attributes:
        name: name of the page.
        package: its docstring has the title, the question, its answer and the introduction, with
            an empty line between them.
        modules: the module of each figure, by the name of the figure.
    """

    name: str
    package: ModuleType
    modules: Mapping[str, ModuleType]

    @property
    def folder(self) -> Path:
        """The default folder of the page, in a checkout."""
        return Path(*self.package.__name__.split("."))

    @property
    def title(self) -> str:
        """The title of the page."""
        return (self.package.__doc__ or "").partition("\n")[0].rstrip(".")

    @property
    def question(self) -> str:
        """What the page asks, in one sentence."""
        return self._paragraph(1)

    @property
    def answer(self) -> str:
        """The answer, in one sentence."""
        return self._paragraph(2)

    @property
    def introduction(self) -> str:
        """What is shown below the answer."""
        return self._paragraph(3)

    @property
    def cover(self) -> str:
        """The figure whose picture stands at the top: `COVER` of the package."""
        return str(getattr(self.package, "COVER", ""))

    def _paragraph(self, number: int) -> str:
        return " ".join((self.package.__doc__ or "").split("\n\n")[number].split())

    @property
    def figures(self) -> dict[str, str]:
        """What each figure shows, by its name."""
        return {
            name: (module.__doc__ or "").partition("\n")[0].rstrip(".")
            for name, module in self.modules.items()
        }


@lru_cache(maxsize=1)
def pages() -> dict[str, Page]:
    """The pages by name."""
    with quiet():  # hide warnings of imports
        return {name: _page(name, import_module(package)) for name, package in PAGES.items()}


def _page(name: str, package: ModuleType) -> Page:
    names = [module.name for module in walk_packages(package.__path__, f"{package.__name__}.")]
    modules = {name.rpartition(".")[2].replace("_", "-"): import_module(name) for name in names}
    return Page(name, package, {name: m for name, m in modules.items() if hasattr(m, "analyse")})


def figures() -> dict[str, Page]:
    """The page of every figure, by the name of the figure."""
    return {figure: page for page in pages().values() for figure in page.figures}


def members(arguments: Sequence[str]) -> list[str]:
    """The figures that arguments name (`all`, a page or a figure), without duplicates."""
    meant = {"all": [*figures()]} | {name: [*page.figures] for name, page in pages().items()}
    return list(dict.fromkeys(name for word in arguments for name in meant.get(word, [word])))


def check_options(names: Sequence[str], setting: Setting) -> None:
    """Check that figures have the methods and take the settings of a command.

    Raises:
        UserError: a figure lacks one of the methods, or takes no settings.
    """
    for name in names:
        known = [*getattr(figures()[name].modules[name], "RUN_METHODS", ())]
        if setting.settings and not known:
            raise UserError(f"{name} has no settings", f"--set {next(iter(setting.settings))}")
        for method in setting.methods:
            if method not in known:
                has = ", ".join(known) or "no methods"
                raise UserError(f"{name} has {has}", f"--method {method}")
        if known:
            runs_of(name, setting.methods or known, [0], setting.settings)
