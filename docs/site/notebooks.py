"""Run the notebooks of examples/ and write them as pages with what they show: `make notebooks`."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
FOLDER = ROOT / "docs" / "notebooks"


def page_of(notebook: Path) -> Path:
    """The page of a notebook."""
    return FOLDER / f"{notebook.stem.replace('_', '-')}.md"


def executed(notebook: Path) -> Any:
    """A notebook after all its cells were run, in an empty folder."""
    import nbclient
    import nbformat

    cells = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    with TemporaryDirectory() as folder:
        settings: Any = {"resources": {"metadata": {"path": folder}}, "timeout": 1800}
        nbclient.NotebookClient(cells, kernel_name="python3", **settings).execute()
    return cells


def code_of(source: str) -> str:
    """The code of a cell without the semicolon that hides its value."""
    return source.removesuffix(";")


def write(notebook: Path, cells: Any) -> None:
    """Write the page of a notebook that was run, and its pictures beside the page."""
    page = page_of(notebook)
    page.parent.mkdir(exist_ok=True)
    parts: list[str] = []
    for cell in cells["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(f"{cell['source']}\n")
            continue
        parts.append(f"```python\n{code_of(cell['source'])}\n```\n")
        for output in cell["outputs"]:
            parts += _shown(output.get("data", {}), page, len(parts))
    title, _, rest = "\n".join(parts).partition("\n")
    source = f"The notebook is [{notebook.name}](../../examples/{notebook.name}).\n"
    page.write_text(f"{title}\n\n{source}{rest}", encoding="utf-8")


def _shown(data: Any, page: Path, number: int) -> list[str]:
    """What an output shows: a picture, a table or a text; no bars of progress."""
    if "image/png" in data:
        picture = page.with_name(f"{page.stem}-{number}.png")
        picture.write_bytes(base64.b64decode(data["image/png"]))
        return [f"![What the code above draws]({picture.name})\n"]
    html = data.get("text/html", "")
    if "<progress" in html:
        return []
    if tables := re.findall(r"<table.*?</table>", html, re.DOTALL):
        return [re.sub(r"<(\w+) [^>]*>", r"<\1>", table) + "\n" for table in tables]
    return [f"```text\n{data['text/plain']}\n```\n"] if "text/plain" in data else []


if __name__ == "__main__":
    for path in NOTEBOOKS:
        write(path, executed(path))
