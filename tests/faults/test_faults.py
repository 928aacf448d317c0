"""A few cases of each kind of fault: the suite of faults itself stays alive.

The whole of it is `make faults`, and what came out is in reports/reliability.md.
"""

import random
from pathlib import Path

import pytest

FEW = 1

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="needs Linux, whose /proc tells of processes"
    ),
]

QUICK = ("result-files", "data-files", "tomls", "command-lines", "diverged-run")
"""Kinds of which a case takes little time."""


@pytest.fixture(scope="module", autouse=True)
def _prepared():
    import torch
    from children import prepare

    threads = torch.get_num_threads()
    prepare()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_lost(tmp_path: Path, name):
    from kinds import KINDS
    from work import Setting

    (kind,) = (kind for kind in KINDS if kind.name == name)
    faults = list(kind.cases(Setting(tmp_path, random.Random(0), FEW)))
    if faults and all(fault is not None and fault.startswith("skipped: ") for fault in faults):
        pytest.skip(str(faults[0]))
    assert faults
    assert [fault for fault in faults if fault is not None] == []


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path: Path):
    from moments import Counter, Moment, kill, struck
    from work import Setting, ends_well, results, run

    work, setting = run(methods=("naive",)), Setting(tmp_path, random.Random(0), FEW)
    place, counter = setting.place(), Counter()
    out = place / "out"
    at = 16  # in the middle of writing the first checkpoint
    end = struck(work, place, Moment("writing", at, 0), kill, counter)
    assert (end.code, counter.total) == (-9, at)
    assert any(path.name.startswith(".") for path in out.glob("**/*"))
    assert results(out).keys() != setting.undisturbed(work).keys()
    assert ends_well(setting, work, place) is None


def test_a_loss_would_be_seen(tmp_path: Path):
    from work import Setting, lost, run

    work = run(methods=("naive",))
    setting = Setting(tmp_path, random.Random(0), FEW, {" ".join(work.arguments(Path("out"))): {}})
    folder = tmp_path / "out" / "run"
    folder.mkdir(parents=True)
    assert lost(setting, work, tmp_path / "out") is None
    (folder / "accuracy.csv").touch()
    assert lost(setting, work, tmp_path / "out") == "run/accuracy.csv is too many"
    (folder / "accuracy.csv").rename(folder / ".accuracy.csv.12345678")
    assert "was left behind" in str(lost(setting, work, tmp_path / "out"))
