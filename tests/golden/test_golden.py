"""What a command computes stays what it is when the house around it changes.

Digests are exact: they decide whether a finished run is recognised. Result tables are of tiny runs,
two of each track, and hold to rounding, since processors round differently. After a change that is
meant to alter numbers, `UPDATE_GOLDEN=1 pytest tests/golden` writes them anew.
"""

import json
import os
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from small_data import small_mushrooms

from vcl_radial import native
from vcl_radial.cli import main
from vcl_radial.errors import UserError
from vcl_radial.reporting import write
from vcl_radial.runs import catalogue, planning

FOLDER = Path(__file__).parent
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

COMMANDS = {
    "continual": (
        "run split-digits-multi-head --method radial-vcl ewc --jobs 1 --out runs "
        "--set epochs=2 hidden=[16] batch_size=32 eval_samples=4"
    ),
    "retinopathy": (
        "run retinopathy-synthetic --method radial-vcl naive --device cpu --out runs "
        "--set epochs=2 channels=2 batch_size=8 learning_rate=3e-3 "
        "data.patients=60 data.validation=0.3 data.size=16"
    ),
    "regression": (
        "run diabetes --method gaussian-vcl badam --seeds 2 --jobs 1 --out runs "
        "--set steps=20 eval_samples=8"
    ),
    "bandits": (
        "run bandit-mushroom --method badam naive --jobs 1 --out runs --data-dir data "
        "--set data.rounds=61"
    ),
}
TABLES = {
    "continual": {
        method: f"split-digits-multi-head/{method}/*/accuracy.csv"
        for method in ("radial-vcl", "ewc")
    },
    "retinopathy": {
        f"{method}-{table}": f"retinopathy-synthetic/{method}/*/{table}.csv"
        for method in ("radial-vcl", "naive")
        for table in ("history", "predictions")
    },
    "regression": {"results": "report/diabetes/results.csv"},
    "bandits": {"bandits": "report/bandit-mushroom/games.csv"},
}
"""The tables that a command leaves below `runs`."""


def golden(name, text):
    """The text of a golden file; it is written first where golden files are to be made anew."""
    path = FOLDER / name
    if UPDATE:
        path.write_text(text)
    return path.read_text()


@pytest.fixture(scope="module", params=COMMANDS)
def track(request, tmp_path_factory):
    """The name of a track, and the folder `runs` that its command has left."""
    if native.unavailable() is not None:
        pytest.skip(f"without the compiled library the draws are others: {native.unavailable()}")
    folder = tmp_path_factory.mktemp(request.param)
    small_mushrooms(folder / "data" / "bandits")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("VCL_RADIAL_DATA", raising=False)
        if not any("report/" in path for path in TABLES[request.param].values()):
            patch.setattr(write, "write_report", lambda *_args, **_settings: set())
        assert main(shlex.split(COMMANDS[request.param])) == 0
    return request.param, folder / "runs"


def test_results_are_those_of_before(track):
    name, runs = track
    for table, pattern in TABLES[name].items():
        (path,) = runs.glob(pattern)
        result = pd.read_csv(path).drop(columns="seconds", errors="ignore")
        golden_file = f"{name}-{table}.csv"
        golden(golden_file, result.to_csv(index=False))
        before = pd.read_csv(FOLDER / golden_file)
        pd.testing.assert_frame_equal(result, before, rtol=2e-3, atol=2e-3, obj=golden_file)


def test_folders_are_named_as_before(track):
    name, runs = track
    folders = sorted(
        str(path.relative_to(runs))
        for path in runs.rglob("*")
        if re.search(r"-[0-9a-f]{8,12}(\.json)?$", path.name)
    )
    before = golden(f"{name}-folders.json", json.dumps(folders, indent=1) + "\n")
    assert folders == json.loads(before)


def test_shipped_runs_keep_their_digests():
    digests = {}
    for benchmark in catalogue.names("benchmark"):
        track = catalogue.load("benchmark", benchmark).track
        for method in catalogue.names("method", track):
            for tuned in (False, True):
                try:
                    runs = planning.plan(benchmark, [method], [3], None, tuned)
                except UserError:  # nothing was tuned there, or it cannot be carried
                    continue
                name = f"{benchmark} {method}{' tuned' * tuned}"
                digests[name] = " ".join(run.digest() for run in runs)
    before = json.loads(golden("digests.json", json.dumps(digests, indent=1) + "\n"))
    assert {name: digests.get(name, "gone") for name in before} == before
