"""A user's faulty method: one line from `run` as from `check`, and the other runs go on."""

import re
import sys
from pathlib import Path

import pytest

from vcl_radial.reporting.gather import gather

METHODS = """
import sys

import torch
from broken_methods import Good
from vcl_radial.config.ranges import Share as Part
from vcl_radial.integrations.avalanche import ContinualStrategy


class DoesNotSum(Good):
    def penalty(self):
        return super().penalty() * torch.ones(2)


class WantsItsOwnWay(Good):
    def __init__(self, *, strength=1.0, **settings):
        super().__init__(strength=strength, **settings)
        if strength > 5:
            raise ValueError("strength must be 5 at most")


class TakesNoSettings(Good):
    def __init__(self, *, strength=1.0):
        super().__init__(strength=strength, **settings)


class SaysItsRange(Good):
    def __init__(self, *, strength: Part | None = 1.0, **settings):
        super().__init__(strength=strength, **settings)


class Quits(Good):
    def consolidate(self, experience):
        sys.exit("enough")


class SaysMuch(Good):
    def consolidate(self, experience):
        raise RuntimeError("several\\nlines\\n  of words")


class NotAStrategy:
    pass
"""


@pytest.fixture(autouse=True)
def _their_modules(command, no_report, monkeypatch):
    """Where commands are called lies `theirs.py`, and what cannot be imported."""
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    Path("theirs.py").write_text(METHODS)
    Path("broken.py").write_text("class Mine(:\n    pass\n")
    mine = "from broken_methods import Good\nclass Mine(Good): pass\n"
    Path("raising.py").write_text(f"import math\n\n\nmath.no_such_thing\n{mine}")
    Path("quitting.py").write_text(f"raise SystemExit('not here')\n{mine}")
    yield
    for module in ("theirs", "broken", "raising", "quitting"):
        sys.modules.pop(module, None)


def recipe(strategy, options="", name="bad"):
    path = Path(f"{name}.toml")
    path.write_text(f'strategy = "{strategy}"\nposterior = "none"\n[options]\n{options}\n')
    return path.name


def run(*methods):
    sizes = ["epochs=1", "hidden=[8]", "stream.tasks=2"]
    return (
        "run",
        "split-digits-multi-head",
        "--jobs",
        "1",
        "--device",
        "cpu",
        "--method",
        *methods,
        "--set",
        *sizes,
    )


def finished():
    return {path.parents[1].name for path in Path("runs").rglob("done")}


WRITTEN = [
    (
        "broken_methods:LacksAMethod",
        r"AttributeError: 'LacksAMethod' object has no attribute 'importance' \(broken_methods.py, "
        r"line \d+, in consolidate\); the traceback is in traceback.txt of the run's folder, and "
        r"`vcl-radial check` looks closer at the method",
    ),
    ("broken_methods:PenaltyIsNaN", r"penalty\(\) of PenaltyIsNaN is nan at the start of task 2"),
    (
        "broken_methods:HasNoGradient",
        r"penalty\(\) of HasNoGradient gives [\d.e-]+ without a gradient: compute it from the",
    ),
    (
        "broken_methods:GivesANumber",
        r"penalty\(\) of GivesANumber gives [\d.e-]+ as a plain number, which has no",
    ),
    (
        "broken_methods:ReturnsNothing",
        r"penalty\(\) of ReturnsNothing gives NoneType: return one number as a tensor",
    ),
    ("theirs:DoesNotSum", r"penalty\(\) of DoesNotSum gives shape \(2,\): sum it to one number"),
    (
        "broken_methods:ConsolidatesNaN",
        "ConsolidatesNaN: network.body.0.bias holds nan or inf after task 1, and did not when its "
        r"training ended: look at consolidate\(\)",
    ),
    (
        "broken_methods:Reshapes",
        r"Reshapes: network.body.0.bias had shape \(8,\) and has \(1, 8\) after task 1: write into "
        r"parameters with copy_\(\)",
    ),
    (
        "broken_methods:DropsAParameter",
        "DropsAParameter: network.body.0.bias is gone after task 1: keep what",
    ),
    (
        "broken_methods:ForgetsToConsolidate",
        r"ForgetsToConsolidate has a penalty\(\) that does not depend on the weights in task 2, "
        r"and its consolidate\(\) left state_dict\(\) as it was: store there",
    ),
    ("theirs:Quits", r"SystemExit: enough \(theirs.py, line \d+, in consolidate\); the traceback"),
    (
        "theirs:SaysMuch",
        r"RuntimeError: several lines of words \(theirs.py, line \d+, in consolidate\)",
    ),
]


@pytest.mark.parametrize(("name", "message"), WRITTEN)
def test_what_a_class_does_wrong_is_one_line_and_the_other_runs_go_on(name, message, command):
    bad, good = recipe(name), recipe("theirs:Good", name="good")
    code, _, err = command(*run(bad, good))
    assert (code, len(err)) == (1, 1), err
    assert re.match(rf"vcl-radial: bad seed 0: {message}", err[0]), err[0]
    assert finished() == {"good"}


@pytest.mark.parametrize("name", ["Quits", "SaysMuch"])
def test_the_traceback_waits_in_the_runs_folder_until_the_next_attempt(name, command):
    bad = recipe(f"theirs:{name}")
    command(*run(bad, "naive"))
    (path,) = Path("runs").rglob("traceback.txt")
    assert path.parents[1].name == "bad"
    assert path.read_text().startswith("Traceback (most recent call last):\n")
    assert "in consolidate" in path.read_text()
    # Mended, but not in its file: that would be another run.
    del getattr(sys.modules["theirs"], name).consolidate
    assert command(*run(bad))[0] == 0
    assert not path.exists()
    assert finished() == {"bad", "naive"}


def test_a_method_that_was_edited_is_another_run_and_both_are_told_apart(command):
    edited, code = recipe("theirs:Own", name="own"), METHODS + "\n\nclass Own(Good):\n    pass\n"
    for text, runs in ((code, 1), (code, 1), (code + "# edited\n", 2)):
        Path("theirs.py").write_text(text)
        sys.modules.pop("theirs", None)
        assert command(*run(edited))[0] == 0
        runs_read, passed_over = gather(Path("runs"))
        assert len({run.method for run in runs_read}) == len(runs_read) == runs
        assert passed_over == []
    assert {run.method[:9] for run in runs_read} == {"own (code"}


def test_a_posterior_that_breaks_is_named_with_its_place(command):
    Path("theirs.py").write_text(
        "from vcl_radial.posteriors import Gaussian\n\n\nclass Broken(Gaussian):\n"
        "    def closed_kl(self, prior):\n        return self.nothing.sum()\n"
    )
    edited = recipe("vcl", name="own")
    Path(edited).write_text('strategy = "vcl"\nposterior = "theirs:Broken"\n')
    code, _, err = command(*run(edited))
    assert (code, len(err)) == (1, 1), err
    assert "no attribute 'nothing' (theirs.py, line 6, in closed_kl)" in err[0]
    assert "vcl-radial check" in err[0]


def test_seeds_that_fail_alike_are_one_line(command):
    code, _, err = command(*run(recipe("broken_methods:LacksAMethod")), "--seeds", "2")
    assert (code, len(err)) == (1, 1)
    assert err[0].startswith("vcl-radial: bad seed 0, bad seed 1: AttributeError: ")


AT_ONCE = [
    ("no_such:Mine", "", "cannot import 'no_such': No module named 'no_such'"),
    ("broken:Mine", "", "cannot import 'broken': invalid syntax (broken.py, line 1)"),
    ("theirs:NotAStrategy", "", "is neither a vcl_radial.methods.base.Method nor"),
    ("ewc", "gamma = 2", "options.gamma = 2 must be a number from 0 to 1"),
    ("theirs:SaysItsRange", "strength = 7", "options.strength = 7 must be a number from 0 to 1"),
    ("theirs:Good", "memory = 3", "unknown option 'memory' of strategy = 'theirs:Good': its only"),
    (
        "theirs:TakesNoSettings",
        "",
        ": TakesNoSettings.__init__ (theirs.py) takes no 'device': take **settings and pass them",
    ),
    (
        "broken_methods:ConsolidatesNoExperience",
        "",
        "does not take all arguments of the method that it overrides: define it as "
        "consolidate(self, experience)",
    ),
    (
        "raising:Mine",
        "",
        "strategy = 'raising:Mine': cannot import 'raising': module 'math' has no attribute "
        "'no_such_thing' (AttributeError in raising.py, line 4)",
    ),
    ("quitting:Mine", "", "cannot import 'quitting': not here (SystemExit in quitting.py, line 1)"),
]
WHEN_MADE = [
    (
        "theirs:WantsItsOwnWay",
        "strength = 7",
        "strategy = 'theirs:WantsItsOwnWay' with options {'strength': 7}: ValueError: strength "
        "must be 5 at most (theirs.py, line",
    ),
]


@pytest.mark.parametrize(("strategy", "options", "message"), AT_ONCE)
def test_what_a_recipe_names_wrongly_is_one_line_before_any_run_starts(
    strategy, options, message, command
):
    bad = recipe(strategy, options)
    code, out, err = command(*run(bad, recipe("theirs:Good", name="good")), "--seeds", "3")
    assert (code, out, len(err)) == (1, "", 1), err
    assert err[0].startswith("vcl-radial: bad: ")
    assert message in err[0]
    assert not Path("runs").exists()
    code, out, err = command("check", bad)
    assert (code, out, len(err)) == (1, "", 1), err
    assert message in err[0]


@pytest.mark.parametrize(("strategy", "options", "message"), WHEN_MADE)
def test_what_a_constructor_refuses_is_one_line_before_any_run_trains_and_from_check(
    strategy, options, message, command
):
    bad = recipe(strategy, options)
    code, _, err = command(*run(recipe("theirs:Good", name="good"), bad), "--seeds", "2")
    assert (code, len(err)) == (1, 1), err
    assert err[0].startswith("vcl-radial: bad: ")
    assert message in err[0]
    assert finished() == set()
    code, out, err = command("check", bad)
    assert (code, out, len(err)) == (1, "", 1), err
    assert message in err[0]


def test_all_methods_that_a_recipe_names_wrongly_are_named_at_once(command):
    bad = [recipe("ewc", "gamma = 2\nfisher = 'full'", "a"), recipe("no_such:Mine", name="b")]
    code, _, err = command(*run(*bad), "--seeds", "2")
    assert (code, len(err)) == (1, 1)
    for fault in ("options.gamma = 2", "options.fisher = 'full'", "cannot import 'no_such'"):
        assert err[0].count(fault) == 1


def test_a_class_where_a_recipe_is_wanted_is_told_what_to_write(command):
    code, _, err = command(*run("theirs:Good"))
    assert (code, len(err)) == (1, 1)
    assert "'theirs:Good' is a strategy without a recipe: write one with strategy = " in err[0]


def test_a_file_that_is_no_recipe_is_named_before_any_run_starts(command):
    Path("bad.toml").write_text("strategy = \n")
    for arguments in (run("bad.toml", "naive"), ("check", "bad.toml")):
        code, out, err = command(*arguments)
        assert (code, out, len(err)) == (1, "", 1)
        assert err[0].startswith("vcl-radial: bad.toml: not valid TOML: ")


def test_check_names_a_class_that_ends_the_process(command):
    code, out, _ = command("check", "theirs:Quits", "--set", "posterior=none")
    assert code == 1
    assert any(line.startswith("FAULT") and "enough" in line for line in out.splitlines())


def test_check_names_a_network_that_cannot_be_used_at_all(command):
    Path("theirs.py").write_text("def network(shape):\n    raise ValueError('boom')\n")
    code, out, err = command("check", "naive", "--set", "network=theirs:network")
    assert (code, out) == (1, "")
    (line,) = err
    assert "boom" in line
