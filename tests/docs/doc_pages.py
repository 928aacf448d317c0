"""The pages of the repository as a reader meets them: code blocks, commands, links and headings."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""The pages whose code is run."""

PAGES = [
    *DOCS,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "baselines" / "README.md",
    *sorted((ROOT / "reports").rglob("*.md")),
]
"""The pages whose links and commands are checked."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n)+")
_FILE = re.compile(r"`([\w-]+\.(?:py|toml))`")

_MODULES = "python -m reports", "python -m benchmarks.speed"

# Variables, loops and quotes are the shell's matter. Every other command is missing on purpose.
_SHELL = r"""
PATH=
set -f
command_not_found_handle() { :; }
vcl-radial() { printf '%s\037' "$@" >&3; printf '\036' >&3; }
python() { case "$1 $2" in "-m reports" | "-m benchmarks.speed") shift; vcl-radial "$@";; esac; }
torchrun() { while [ "$1" != vcl_radial ]; do shift; done; shift; vcl-radial "$@"; }
"""


@dataclass(frozen=True)
class Block:
    """A fenced block; `file` is the last file that the text before it names."""

    language: str
    code: str
    file: str | None


def name(page: Path) -> str:
    """The path of a page from the root, for the names of tests."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text, end, result = page.read_text(encoding="utf-8"), 0, []
    for match in _FENCE.finditer(text):
        files = _FILE.findall(text[end : match.start()])
        result.append(Block(match[1], match[2], files[-1] if files else None))
        end = match.end()
    return result


def block(page: Path, language: str, part: str) -> str:
    """The code of the one block of a language that holds a text."""
    (code,) = [b.code for b in blocks(page) if b.language == language and part in b.code]
    return code


def write_files(page: Path, folder: Path) -> None:
    """Write the blocks that a page calls a file, as its reader would."""
    for part in blocks(page):
        if part.file is not None and part.language in ("python", "toml"):
            (folder / part.file).write_text(part.code, encoding="utf-8")


def prose(page: Path) -> str:
    """A page without its code."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`]*`", "", _INDENTED.sub("\n", text))


def commands(page: Path, folder: Path) -> list[list[str]]:
    """The arguments of every command that a page shows, loops unrolled by a shell.

    Those of `python -m MODULE` begin with the module.

    Args:
        page: the page.
        folder: where the shell is, an empty one.
    """
    text = page.read_text(encoding="utf-8")
    shown = [b.code for b in blocks(page) if b.language in ("sh", "bash")]
    text = _FENCE.sub("", text)
    indented = [part.replace("\n    ", "\n") for part in _INDENTED.findall(text)]
    shown += [part for part in indented if any(p in part for p in ("vcl-radial", *_MODULES))]
    inline = re.findall(r"`([^`]+)`", _INDENTED.sub("\n", text))
    if name(page) == "reports/README.md":  # its table leaves the first word out
        columns = [row.split(" | ")[2] for row in text.splitlines() if row.count(" | ") > 4]
        inline = [
            part if part.startswith("python") else f"vcl-radial {part}"
            for cell in columns
            for part in re.findall("`([^`]+)`", cell)
        ]
    for line in map(str.split, inline):
        module = " ".join(line[:3]) in _MODULES
        if (module or line[:1] == ["vcl-radial"]) and not any("..." in word for word in line):
            # A command without arguments is mentioned, not shown.
            mentioned = line[3:] == ["pages"] if module else len(line) <= 2
            shown.append(" ".join([*line, "--help"] if mentioned else line))
    script = "\n".join(["exec 3>&1 >/dev/null", _SHELL, *shown])
    shell = shutil.which("bash") or "bash"
    answer = subprocess.run(
        [shell, "-c", script], cwd=folder, capture_output=True, check=False, env={}
    )
    lines = answer.stdout.decode().split("\036")[:-1]
    return [line.split("\037")[:-1] for line in lines]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    result: set[str] = set()
    for heading in re.findall(r"^#+ +(.*?) *#*$", text, re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        numbered = (slug if n == 0 else f"{slug}-{n}" for n in range(100))
        result.add(next(anchor for anchor in numbered if anchor not in result))
    return result


def links(page: Path) -> list[str]:
    """The relative targets of a page's links and pictures."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]
