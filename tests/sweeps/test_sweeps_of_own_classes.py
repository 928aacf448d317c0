"""Classes and data of the user's own, in a sweep and in its report."""

import sys
from pathlib import Path

import pytest
from made_up import made_up
from tiny_sweeps import DIGITS, trials_bytes

from vcl_radial.errors import UserError
from vcl_radial.sweeps.folder import described
from vcl_radial.sweeps.plans import read
from vcl_radial.sweeps.report import write_sweep_report
from vcl_radial.sweeps.results import read_results

SWEEPS = Path(__file__).parents[2] / "benchmarks" / "sweeps"
CODE = {
    "own_methods": (
        "from vcl_radial.integrations.avalanche.methods import L2\n\n\nclass Mine(L2):\n    pass\n"
    ),
    "own_posteriors": """
from vcl_radial.posteriors import Gaussian


class Mine(Gaussian):
    pass
""",
    "own_data": """
from vcl_radial.data.streams import load_dataset


def mine(root):
    return load_dataset("digits")
""",
}
GRID = {"kind": "grid", "trials": None, "seeds": 2}
RECIPE = 'strategy = "own_methods:Mine"\nposterior = "none"\n'
START = {"method": ["l2.toml", "naive"], "search": {"learning_rate": [0.1, 0.2]}}
POSTERIORS = {
    "method": "gaussian-vcl",
    "search": {"posterior": ["gaussian", "own_posteriors:Mine"]},
}
STREAMS = {"search": {"stream.dataset": ["digits", "own_data:mine"]}}
FIXED = {
    "fixed__stream": {"tasks": 2, "dataset": "own_data:mine"},
    "search": {"learning_rate": [0.1, 0.2]},
}


@pytest.fixture(autouse=True)
def _code(user_module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("l2.toml").write_text(RECIPE)
    for name, code in CODE.items():
        user_module(name, code)
    yield
    for name in CODE:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "changes", [START, POSTERIORS, STREAMS, FIXED], ids=["start", "class", "data", "fixed"]
)
def test_the_report_finds_the_runs_of_all_trials_without_the_code(changes, tmp_path: Path) -> None:
    studies, _ = made_up(tmp_path, **GRID, **changes)
    for name in CODE:
        (tmp_path / "user" / f"{name}.py").unlink()
        sys.modules.pop(name, None)
    for one in read_results(tmp_path / "tiny", "forgetting").searched:
        assert len(one.environments) == 4
        assert [trial.seconds for trial in one.trials] == [4.0, 4.0]
        assert None not in [trial.score for trial in one.trials]
    write_sweep_report(tmp_path / "tiny", tmp_path / "report", by="forgetting")
    page = (tmp_path / "report" / DIGITS / "summary.md").read_text()
    assert f"runs: {4 * len(studies)} finished" in page
    assert "checksum" not in page


def test_code_of_the_recipe_that_was_edited_meanwhile_is_refused(
    user_module, tmp_path: Path
) -> None:
    made_up(tmp_path, **GRID, **START)
    before = trials_bytes(tmp_path)
    _, again = made_up(tmp_path, **GRID, **START)
    assert again.done == []
    user_module("own_methods", CODE["own_methods"] + "# edited\n")
    with pytest.raises(UserError, match=r"sweep\.toml: "):
        made_up(tmp_path, **GRID, **START)
    assert trials_bytes(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "changes"), [("own_posteriors", POSTERIORS), ("own_data", STREAMS)]
)
def test_trials_with_code_that_was_edited_meanwhile_are_run_again(
    name, changes, user_module, tmp_path: Path
) -> None:
    made_up(tmp_path, **GRID, **changes)
    user_module(name, CODE[name] + "# edited\n")
    _, again = made_up(tmp_path, **GRID, **changes)
    assert len(again.done) == 2  # the seeds of one of the two choices


@pytest.mark.parametrize("sweep", sorted(path.stem for path in SWEEPS.glob("*.toml")))
def test_every_sweep_of_the_suite_can_be_written_down(sweep: str) -> None:
    plans = read(sweep)
    searched = described(plans)["search"]
    assert searched.keys() == plans[0].sweep.search.keys()
