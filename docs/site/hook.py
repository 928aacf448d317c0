"""MkDocs: the pages of the repository and the generated ones as one site.

The site has the folders of the repository, so that relative links are the same in both. A link to
code leads to a page with that code, one to a folder without a README to a list of its files.
"""

from __future__ import annotations

import re
import sys
from functools import cache, partial
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[2]))

from docs.site import generate
from docs.site.markdown import code
from vcl_radial.runs import tracks

ROOT = generate.ROOT
GLOBS = "*.md", "docs/**/*.md", "reports/**/*.md", "baselines/*.md"
ASSETS = ("docs/site/site.css",)
FOLDERS = {
    "vcl_radial/methods": "methods/README.md",
    "benchmarks": "benchmarks/README.md",
    **dict.fromkeys((f"baselines/{t}" for t in tracks.names()), "methods/README.md"),
}
"""Folders that a gallery shows."""

LANGUAGES = {".py": "python", ".toml": "toml", ".cff": "yaml", ".ipynb": "json", ".c": "c"}
"""Files that are shown as pages, by their ending."""

CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def on_config(config: Any) -> Any:
    """Fill in the pages of a folder where the navigation names the folder."""
    _expand(config.nav)
    return config


def _expand(items: list[Any]) -> None:
    for item in items:
        for title, value in item.items() if isinstance(item, dict) else ():
            if isinstance(value, list):
                _expand(value)
            elif value.endswith("/"):
                found = [p for p in (*repository_pages(), *generate.pages()) if p.startswith(value)]
                item[title] = sorted(found, key=lambda p: (p != f"{value}README.md", p))


@cache
def repository_pages() -> list[str]:
    """The Markdown files of the repository that are pages of the site."""
    paths = {path.relative_to(ROOT).as_posix() for glob in GLOBS for path in ROOT.glob(glob)}
    return sorted(paths)


@cache
def target(path: str) -> str:
    """The file of the site for a file or folder of the repository that a page links to."""
    if path in generate.pages() or path in repository_pages():
        return path
    if (ROOT / path).is_dir():
        readme = f"{path}/README.md"
        listing = f"source/{path}/README.md"
        return FOLDERS.get(path, readme if readme in repository_pages() else listing)
    return f"source/{path}.md" if PurePosixPath(path).suffix in LANGUAGES else path


def source(path: str) -> str:
    """The page of a file of code, or of a folder."""
    front = f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if (ROOT / path).is_dir():
        files = sorted(p for p in (ROOT / path).rglob("*") if p.is_file())
        names = [p.relative_to(ROOT / path).as_posix() for p in files if "__" not in p.name]
        return front + "The files of this folder of the repository:\n\n" + code("\n".join(names))
    text = (ROOT / path).read_text(encoding="utf-8")
    return front + "`````" + LANGUAGES[PurePosixPath(path).suffix] + f"\n{text}\n`````\n"


def on_files(files: Files, config: Any) -> Files:
    """Replace the files of docs/ by the pages, what they link to, and the generated pages."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in repository_pages()}
    texts |= {path: make() for path, make in generate.pages().items()}
    linked = {
        normpath(f"{PurePosixPath(page).parent}/{link}")
        for page, text in texts.items()
        for link in links(text)
    }
    for path in linked:
        if not (ROOT / path).exists():
            continue  # MkDocs reports it
        made = target(path)
        if made.startswith("source/"):
            texts[made] = source(path)
        elif made not in texts:
            files.append(File(made, str(ROOT), config.site_dir, config.use_directory_urls))
    for path in ASSETS:
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files


def links(text: str) -> list[str]:
    """The relative links of a page, without anchors."""
    return [link for part in CODE.split(text)[::2] for link in LINK.findall(part)]


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to the files of the site, and let Markdown within <details> be Markdown."""
    folder = PurePosixPath(page.file.src_uri).parent
    parts = CODE.split(markdown)
    move = partial(_moved, str(folder))
    parts[::2] = (
        LINK.sub(move, part).replace("<details>", '<details markdown="1">') for part in parts[::2]
    )
    return "".join(parts)


def _moved(folder: str, link: re.Match[str]) -> str:
    path = normpath(f"{folder}/{link[1]}")
    return relpath(target(path), folder) if (ROOT / path).exists() else link[1]
