"""The examples run from start to end, and say what they are there to show."""

import os
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SLOW = {
    "avalanche_benchmark",  # it cuts its batches by Avalanche's own loaders
    "own_method",  # it runs three tracks
}


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in SLOW)) for p in EXAMPLES],
)
def test_an_example_runs_and_is_short(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    shares = [float(share) for share in re.findall(r"[\d.]+(?= %)", capsys.readouterr().out)]
    assert shares
    assert max(shares) > 75  # it learns
    assert len(path.read_text().splitlines()) <= 80


def shown(cell):
    """The kinds of content that a cell of a notebook shows, as plain text last."""
    return {kind: text for o in cell.outputs for kind, text in o.get("data", {}).items()}


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_tables_figures_and_a_bar(path, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear its outputs"
    for cell in notebook.cells:
        cell.source = cell.source.replace('"epochs": 5', '"epochs": 2')
    settings = {"resources": {"metadata": {"path": str(tmp_path)}}, "timeout": 600}
    nbclient.NotebookClient(notebook, kernel_name="python3", **settings).execute()
    by_source = {cell.source: shown(cell) for cell in notebook.cells if cell.cell_type == "code"}
    (ran,) = [kinds for source, kinds in by_source.items() if source.endswith("\nresults")]
    assert "radial-vcl" in ran["text/html"]
    assert "<table" in by_source["results.summary()"]["text/html"]
    assert "image/png" in by_source['results.heatmap("radial-vcl")']
    assert "image/png" in by_source["results.curves()"]
    bars = [str(output) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("<progress" in bar for bar in bars)
