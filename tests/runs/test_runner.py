import os
from pathlib import Path

import pytest
from tiny_runs import accuracy_bytes, tiny_run

from vcl_radial.errors import UserError
from vcl_radial.runs import folder as folder_module
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.lock import held
from vcl_radial.runs.place import Place
from vcl_radial.runs.runner import available_cores, perform


def times(folder: RunFolder) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.path.iterdir()}


def test_finished_runs_are_not_run_again_and_this_is_said(tmp_path: Path, capsys):
    runs = [tiny_run(seed=seed) for seed in (0, 1)]
    assert [outcome.fault for outcome in perform(runs[:1], Place(tmp_path), 1)] == [None]
    before = times(RunFolder(tmp_path, runs[0]))
    capsys.readouterr()
    assert [outcome.run.seed for outcome in perform(runs, Place(tmp_path), 1)] == [1]
    assert "1 run to do, 1 at a time, 1 kept from before" in capsys.readouterr().out
    assert perform(runs, Place(tmp_path), 1) == []
    assert "all 2 runs were finished before" in capsys.readouterr().out
    assert times(RunFolder(tmp_path, runs[0])) == before
    perform(runs, Place(tmp_path, log=("tensorboard",)), 1)
    assert "--log tensorboard: 2 runs were finished before without it" in capsys.readouterr().out


def test_an_altered_result_is_named_and_only_its_run_is_done_again(tmp_path: Path, capsys):
    runs = [tiny_run(seed=seed) for seed in (0, 1)]
    perform(runs, Place(tmp_path), 1)
    kept, altered = (RunFolder(tmp_path, run) for run in runs)
    whole, before = accuracy_bytes(runs[1], tmp_path), times(kept)
    path = altered.path / "accuracy.csv"
    path.write_bytes(whole.replace(b"accuracy", b"nll", 1))
    capsys.readouterr()
    assert [outcome.run.seed for outcome in perform(runs, Place(tmp_path), 1)] == [1]
    assert f"{path} was altered after the run: this run is done again" in capsys.readouterr().out
    assert path.read_bytes() == whole
    assert altered.fault() is None
    assert times(kept) == before


def test_a_run_that_fails_does_not_keep_the_others_from_finishing(tmp_path: Path, capsys):
    diverging = tiny_run("naive", seed=0, learning_rate=1e30, optimizer="sgd")
    runs = [diverging, tiny_run(seed=1)]
    first, second = perform(runs, Place(tmp_path), 1)
    assert first.fault is not None
    assert "nan in epoch 1 of task 1" in first.fault
    assert len(first.fault.splitlines()) == 1
    assert second.fault is None
    assert RunFolder(tmp_path, runs[1]).fault() is None
    shown = capsys.readouterr().out
    assert "naive seed 0  FAILED  [1 of 2]" in shown
    assert "naive seed 1  done in " in shown


def test_a_checkpoint_that_cannot_be_used_fails_its_run_alone(tmp_path: Path):
    runs = [tiny_run(seed=seed) for seed in (0, 1, 2)]
    perform(runs[:1], Place(tmp_path), 1)
    before = times(RunFolder(tmp_path, runs[0]))
    broken = RunFolder(tmp_path, runs[1])
    broken.start()
    foreign = RunFolder(tmp_path / "other", runs[2])
    foreign.save_checkpoint({})
    foreign.checkpoint.rename(broken.checkpoint)
    one, two = perform(runs, Place(tmp_path), 1)
    assert one.fault == (
        f"{broken.checkpoint}: belongs to another spec; delete it to run this seed from its start"
    )
    assert two.fault is None
    assert times(RunFolder(tmp_path, runs[0])) == before
    broken.checkpoint.unlink()
    assert [outcome.fault for outcome in perform(runs, Place(tmp_path), 1)] == [None]


def test_a_damaged_checkpoint_is_named_and_its_run_starts_anew(tmp_path: Path, capsys):
    run = tiny_run()
    folder = RunFolder(tmp_path, run)
    folder.save_checkpoint({})
    folder.checkpoint.write_bytes(folder.checkpoint.read_bytes()[:-1])
    assert [outcome.fault for outcome in perform([run], Place(tmp_path), 1)] == [None]
    words = "damaged (its checksum is wrong); this run starts anew"
    assert f"{folder.checkpoint}: {words}" in capsys.readouterr().out
    assert folder.fault() is None


def test_a_run_that_another_command_is_at_work_on_is_left_to_it(tmp_path: Path, capsys):
    runs = [tiny_run(seed=seed) for seed in (0, 1)]
    with held([RunFolder(tmp_path, runs[0]).path]):
        one, two = perform(runs, Place(tmp_path), 1)
    assert one.fault is not None
    assert one.fault.startswith("another command is at work on this run")
    assert two.fault is None
    shown = capsys.readouterr().out
    assert "naive seed 0  left to another command  [1 of 2]" in shown
    assert "FAILED" not in shown
    assert [outcome.fault for outcome in perform(runs, Place(tmp_path), 1)] == [None]


@pytest.mark.parametrize(
    ("strategy", "options", "words"),
    [
        ("vlc", {}, "strategy = 'vlc' is not known: the nearest is 'vcl'"),
        ("no_such_package:A", {}, "cannot import 'no_such_package'"),
        ("mine_broken:A", {}, "cannot import 'mine_broken': boom"),
        ("mine:Missing", {}, "'mine' has no 'Missing'"),
        ("mine:Stranger", {}, "not a vcl_radial.strategies.ContinualStrategy"),
        ("mine:number", {}, "not a vcl_radial.strategies.ContinualStrategy"),
        ("mine:Mine", {"options.memory": 200}, "'memory'"),
    ],
)
def test_a_strategy_that_cannot_be_used_is_named(
    tmp_path: Path, user_module, strategy, options, words
):
    user_module("mine_broken", "raise RuntimeError('boom')\n")
    user_module(
        "mine",
        "from vcl_radial.strategies import ContinualStrategy\n"
        "number = 3\nclass Stranger: pass\nclass Mine(ContinualStrategy): pass\n",
    )
    (outcome,) = perform([tiny_run(strategy=strategy, **options)], Place(tmp_path), 1)
    assert outcome.fault is not None
    assert words in outcome.fault
    assert len(outcome.fault.splitlines()) == 1


def test_a_fault_inside_a_users_strategy_shows_where_it_is(tmp_path: Path, user_module):
    user_module(
        "mine_faulty",
        "from vcl_radial.strategies import ContinualStrategy\n"
        "class Mine(ContinualStrategy):\n"
        "    def consolidate(self, experience):\n"
        "        raise ZeroDivisionError('mine')\n",
    )
    (outcome,) = perform([tiny_run(strategy="mine_faulty:Mine")], Place(tmp_path), 1)
    assert outcome.fault is not None
    assert "mine_faulty.py" in outcome.fault
    assert "ZeroDivisionError: mine" in outcome.fault


def test_batches_larger_than_a_task_are_refused_where_the_last_is_dropped(tmp_path: Path):
    too_large = tiny_run(batch_size=5000)
    kept = tiny_run(batch_size=5000, drop_last=False)
    refused, fine = perform([too_large, kept], Place(tmp_path), 1)
    assert refused.fault is not None
    assert "batch_size = 5000 is more than the" in refused.fault
    assert fine.fault is None


def test_an_output_folder_that_cannot_be_used_is_named_before_any_run_starts(
    tmp_path: Path, monkeypatch
):
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match=f"{out}: cannot be made: .*--out"):
            perform([tiny_run()], Place(out), 1)
    monkeypatch.setattr(folder_module.os, "access", lambda *_: False)
    with pytest.raises(UserError, match=r"is not writable; choose another folder with --out"):
        perform([tiny_run()], Place(tmp_path), 1)


def test_the_cores_counted_are_those_that_may_be_used():
    assert 1 <= available_cores() <= (os.cpu_count() or 1)
