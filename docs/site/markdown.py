"""Tables, code and docstrings as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; cells may hold any text."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", text)  # odd ones are code, in which a bar is no border
    parts[::2] = (re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts[::2])
    return " ".join("".join(parts).split())


def code(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def prose(docstring: str) -> str:
    """A docstring as Markdown: what Markdown takes for markup is escaped, equations are code."""
    paragraphs = re.split(r"\n\n+", inspect.cleandoc(docstring))
    return "\n\n".join(map(_paragraph, paragraphs)) + "\n"


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if all(line.startswith("    ") for line in lines):
        return code(inspect.cleandoc("x\n" + text).partition("\n")[2])
    if lines[0].startswith(("| ", "- ")):
        return text
    parts = re.split(r"(`[^`]*`)", text)  # odd ones are code
    return "".join(
        _linked(p) if n % 2 else re.sub(r"([*<\\])", r"\\\1", p) for n, p in enumerate(parts)
    )


def _linked(code: str) -> str:
    """Code that names a module, or something in it, as a link to the module's file."""
    name = code.strip("`")
    for module in (name, name.rpartition(".")[0]):
        path = f"{module.replace('.', '/')}.py"
        if module.startswith("vcl_radial.") and (ROOT / path).is_file():
            return f"[{code}](../{path})"
    return code


def sentence(text: str) -> str:
    """A description as a sentence."""
    return text[:1].upper() + text[1:].rstrip(".") + "."
