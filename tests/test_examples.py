"""The examples run from start to end, and say what they are there to show."""

import os
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
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


def executed(name, tmp_path, monkeypatch, **replaced):
    """The code cells of a notebook with what they show."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    scripts = [str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(scripts))  # `vcl-radial`
    notebook = nbformat.read(ROOT / "examples" / name, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear its outputs"
    for cell in notebook.cells:
        for key, epochs in replaced.items():
            cell.source = cell.source.replace(f'"{key}": {epochs}', f'"{key}": 2')
    settings = {"resources": {"metadata": {"path": str(tmp_path)}}, "timeout": 600}
    nbclient.NotebookClient(notebook, kernel_name="python3", **settings).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.slow
@pytest.mark.processes
def test_the_first_notebook_shows_tables_figures_and_a_bar(tmp_path, monkeypatch):
    cells = executed("first_results.ipynb", tmp_path, monkeypatch, epochs=5)
    by_source = {cell.source: shown(cell) for cell in cells}
    (ran,) = [kinds for source, kinds in by_source.items() if source.endswith("\nresults")]
    assert "radial-vcl" in ran["text/html"]
    assert "<table" in by_source["results.summary()"]["text/html"]
    assert "image/png" in by_source['results.heatmap("radial-vcl")']
    assert "image/png" in by_source["results.curves()"]
    assert any("<progress" in str(output) for cell in cells for output in cell.outputs)


@pytest.mark.slow
@pytest.mark.processes
def test_the_notebook_after_training_keeps_updates_and_predicts(tmp_path, monkeypatch):
    cells = executed("after_training.ipynb", tmp_path, monkeypatch, epochs=20)
    by_source = {cell.source: shown(cell) for cell in cells}
    updated = [kinds for source, kinds in by_source.items() if "vr.update" in source]
    assert "sixes-and-sevens" in updated[0]["text/plain"]
    (table,) = [kinds for source, kinds in by_source.items() if "groupby" in source]
    assert "mutual information" in table["text/html"]
    assert sum("image/png" in kinds for kinds in by_source.values()) == 3
    assert len((tmp_path / "images.csv").read_text().splitlines()) == 21
