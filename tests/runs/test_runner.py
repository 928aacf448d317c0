import os
import re
from pathlib import Path

import pytest
from tiny_runs import finished, tiny_run

from vcl_radial.errors import UserError
from vcl_radial.runs import folder as folder_module
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.runs.runner import available_cores, perform


def test_runs_that_were_finished_without_a_logger_are_counted(tmp_path: Path, capsys):
    runs = [tiny_run(seed=seed) for seed in (0, 1)]
    for run in runs:
        finished(tmp_path, run)
    perform(runs, RunContext(tmp_path, log=("tensorboard",)), 1)
    assert "tensorboard: 2 runs were finished before" in capsys.readouterr().out


def test_a_run_that_fails_does_not_keep_the_others_from_finishing(tmp_path: Path, capsys):
    diverging = tiny_run("naive", seed=0, learning_rate=1e30, optimizer="sgd")
    runs = [diverging, tiny_run(seed=1)]
    first, second = perform(runs, RunContext(tmp_path), 1)
    assert first.fault is not None
    assert "nan in epoch 1 of task 1" in first.fault
    assert len(first.fault.splitlines()) == 1
    assert second.fault is None
    assert RunFolder(tmp_path, runs[1]).fault() is None
    shown = capsys.readouterr().out
    assert "naive seed 0  FAILED  [1 of 2]" in shown
    assert "naive seed 1  done in " in shown


@pytest.mark.parametrize(
    ("strategy", "options", "words"),
    [
        ("vlc", {}, "strategy = 'vlc' is not known: the nearest is 'vcl'"),
        ("no_such_package:A", {}, "cannot import 'no_such_package'"),
        ("mine_broken:A", {}, "cannot import 'mine_broken': boom"),
        ("mine:Missing", {}, "'mine' has no 'Missing'"),
        ("mine:Stranger", {}, "neither a vcl_radial.methods.base.Method nor"),
        ("mine:number", {}, "neither a vcl_radial.methods.base.Method nor"),
        ("mine:Mine", {"options.memory": 200}, "'memory'"),
    ],
)
def test_a_strategy_that_cannot_be_used_is_named(
    tmp_path: Path, user_module, strategy, options, words
):
    user_module("mine_broken", "raise RuntimeError('boom')\n")
    user_module(
        "mine",
        "from vcl_radial.integrations.avalanche import ContinualStrategy\n"
        "number = 3\nclass Stranger: pass\nclass Mine(ContinualStrategy): pass\n",
    )
    with pytest.raises(UserError, match=f"^naive: .*{re.escape(words)}") as refusal:
        perform([tiny_run(strategy=strategy, **options)], RunContext(tmp_path), 1)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_fault_inside_a_users_strategy_shows_where_it_is(tmp_path: Path, user_module):
    user_module(
        "mine_faulty",
        "from vcl_radial.integrations.avalanche import ContinualStrategy\n"
        "class Mine(ContinualStrategy):\n"
        "    def consolidate(self, experience):\n"
        "        raise ZeroDivisionError('mine')\n",
    )
    (outcome,) = perform([tiny_run(strategy="mine_faulty:Mine")], RunContext(tmp_path), 1)
    assert outcome.fault is not None
    assert "mine_faulty.py" in outcome.fault
    assert "ZeroDivisionError: mine" in outcome.fault


def test_a_network_that_does_not_fit_into_memory_is_named_with_the_mend(tmp_path: Path):
    (outcome,) = perform([tiny_run(hidden=[10**12])], RunContext(tmp_path), 1)
    assert "needs more memory than there is: choose a smaller network" in outcome.fault


def test_batches_larger_than_a_task_are_refused_where_the_last_is_dropped(tmp_path: Path):
    with pytest.raises(UserError, match=r"^naive: batch_size = 5000 is more than the"):
        perform([tiny_run(batch_size=5000)], RunContext(tmp_path), 1)
    (fine,) = perform([tiny_run(batch_size=5000, drop_last=False)], RunContext(tmp_path), 1)
    assert fine.fault is None


@pytest.mark.parametrize(
    ("strategy", "option", "message"),
    [
        (
            "mc_dropout",
            "rate = 2.0",
            "options.rate = 2.0 must be a number of at least 0 and below 1",
        ),
        ("ewc", "gamma = 2.0", "options.gamma = 2.0 must be a number from 0 to 1"),
    ],
)
def test_a_value_that_a_method_refuses_on_a_table_is_named_before_any_run_trains(
    tmp_path: Path, strategy, option, message
):
    (tmp_path / "bad.toml").write_text(
        f'strategy = "{strategy}"\nposterior = "none"\noptions.{option}\n'
    )
    runs = plan("diabetes", ["naive", str(tmp_path / "bad.toml")], [0, 1])
    with pytest.raises(UserError, match=f"^bad: {re.escape(message)}"):
        perform(runs, RunContext(tmp_path / "out"), 1)
    assert not (tmp_path / "out" / "diabetes").exists()


def test_an_output_folder_that_cannot_be_used_is_named_before_any_run_starts(
    tmp_path: Path, monkeypatch
):
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match=str(out)):
            perform([tiny_run()], RunContext(out), 1)
    monkeypatch.setattr(folder_module.os, "access", lambda *_: False)
    with pytest.raises(UserError) as caught:
        perform([tiny_run()], RunContext(tmp_path), 1)
    assert caught.value.key == str(tmp_path)


def test_the_cores_counted_are_those_that_may_be_used():
    assert 1 <= available_cores() <= (os.cpu_count() or 1)
