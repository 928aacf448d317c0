"""A few cases of each kind of fault: the suite of faults itself stays alive.

The whole of it is `make faults`, and what came out is in reports/reliability.md.
"""

import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

FEW = 1

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="needs Linux, whose /proc tells of processes"
    ),
]

QUICK = ("result-files", "model-files", "data-files", "tomls", "command-lines", "diverged-run")
"""Kinds of which a case takes little time."""


@pytest.fixture(scope="module")
def single_threaded():
    """A process that forks commands: where threads were at work, as here, a fork may wait forever.

    A lock that another thread held at the fork is never released in the copy.
    """
    from children import prepare

    context = multiprocessing.get_context("spawn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        with ProcessPoolExecutor(1, context, initializer=prepare) as process:
            yield process


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_lost(tmp_path: Path, single_threaded, name):
    faults = single_threaded.submit(faults_of, name, tmp_path).result()
    if faults and all(fault is not None and fault.startswith("skipped: ") for fault in faults):
        pytest.skip(str(faults[0]))
    assert faults
    assert [fault for fault in faults if fault is not None] == []


def faults_of(name: str, scratch: Path) -> list[str | None]:
    from kinds import KINDS
    from work import Setting

    (kind,) = (kind for kind in KINDS if kind.name == name)
    return list(kind.cases(Setting(scratch, random.Random(0), FEW)))


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path: Path, single_threaded):
    single_threaded.submit(kill_and_go_on, tmp_path).result()


def kill_and_go_on(scratch: Path) -> None:
    from moments import Counter, Moment, kill, struck
    from work import Setting, ends_well, results, run

    work, setting = run(methods=("naive",)), Setting(scratch, random.Random(0), FEW)
    root, counter = setting.new_folder(), Counter()
    out = root / "out"
    at = 16  # in the middle of writing the first checkpoint
    end = struck(work, root, Moment("writing", at, 0), kill, counter)
    assert (end.code, counter.total) == (-9, at)
    assert any(path.name.startswith(".") for path in out.glob("**/*"))
    assert results(out).keys() != setting.undisturbed(work).keys()
    assert ends_well(setting, work, root) is None


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


def test_a_half_written_file_would_be_seen(tmp_path: Path):
    from commands import _half_written

    whole = {"a.json": b"{}", "b.md": b"text\n", "c.svg": b"<svg></svg>\n", ".d.csv.abc": b"1,"}
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    assert _half_written(tmp_path) is None
    for name, content in list(whole.items())[:3]:
        (tmp_path / name).write_bytes(content[:-1])
        assert str(_half_written(tmp_path)).startswith(f"{name} is half written")
        (tmp_path / name).write_bytes(content)


def test_a_tensor_is_changed_wherever_it_lies():
    import torch
    from states import _ABSENT, _tensors, _with

    state = {"a": {"b": torch.ones(2)}, "c": [1, (torch.zeros(3), "x")], "d": torch.empty(0)}
    paths = [path for path, _ in _tensors(state)]
    assert paths == [("a", "b"), ("c", 1, 0)]
    wrong = _with(state, paths[1], lambda x: x + 1, more=False)
    assert wrong["c"][1][0].tolist() == [1.0, 1.0, 1.0]
    assert state["c"][1][0].tolist() == [0.0, 0.0, 0.0]
    assert _with(state, paths[0], lambda x: _ABSENT, more=False)["a"] == {}
    assert len(_with(state, paths[1], lambda x: x, more=True)["c"][1]) == 3


def test_a_page_keeps_the_rows_of_kinds_that_are_not_renewed():
    from page import Kept, Row, page

    def row(name, cases, lost=()):
        return Row(name, name, "hold", cases, lost, None, 1.0)

    old = page([row("clock", 1200), row("twice", 3, ["half of it"])], ["- before"], 1, 1)
    assert "**Answer.** Yes: 1,202 of 1,203 cases held." in old
    assert page([row("clock", 5)], ["- now"], 1, 1, Kept.of("", ["clock"])).count("<details>") == 1
    new = page([row("clock", 5)], ["- now"], 1, 1, Kept.of(old, ["clock"]))
    assert "**Answer.** Yes: 7 of 8 cases held." in new
    assert [line.split("`")[1] for line in new.splitlines() if "`) |" in line] == ["clock", "twice"]
    assert "half of it" in new
    assert new.index("- now") < new.index("- before")
    both = page([row("twice", 3)], ["- last"], 1, 1, Kept.of(new, ["twice"]))
    assert "**Answer.** No: 8 of 8 cases held." in both
    assert "half of it" not in both
