"""The example scripts run from start to end, and say what they are there to show."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
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
