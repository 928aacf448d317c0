from collections import Counter
from pathlib import Path

import pytest
from matplotlib.patches import Rectangle
from speed_rows import row

from benchmarks.speed import page, profile
from benchmarks.speed.pictures import STACK, Flame
from benchmarks.speed.profile import read_stacks, shares, tree

RAW = """\
process 7:"python -c a; b(3, ['x'])";main (app/main.py:3);<module> (app/__init__.py:1) 2
main (app/main.py:3);run (threading.py:9);work (torch/nn/linear.py:5) 5
main (app/main.py:3);work (torch/nn/linear.py:5);_find (<frozen importlib._bootstrap>:1165) 1
process 8:"" 2
"""
MAIN, WORK, IMPORT = "main (app/main)", "work (torch/nn/linear)", "import (app)"
STACKS = {(MAIN, IMPORT): 2, (MAIN, WORK): 6, ("Python",): 2}


def test_frames_that_only_pass_calls_on_count_for_what_called_them():
    assert read_stacks(RAW) == STACKS


def test_an_item_has_its_own_share_and_that_with_all_it_calls():
    recursive = Counter({("a", "b", "a"): 30, ("a",): 10, ("a", "b"): 60})
    itself, with_calls = shares(recursive)
    assert list(itself.items()) == [("b", 60.0), ("a", 40.0)]
    assert with_calls == {"a": 100.0, "b": 90.0}
    assert sum(shares(STACKS)[0].values()) == pytest.approx(100)


@pytest.mark.parametrize(("smallest", "kept"), [(0.0, 4), (21.0, 2), (61.0, 1), (81.0, 0)])
def test_a_tree_has_callers_first_and_leaves_out_what_is_too_small(smallest, kept):
    kept_shares = tree(STACKS, smallest)
    assert len(kept_shares) == kept
    for number, (stack, share) in enumerate(kept_shares.items()):
        assert share >= smallest
        if stack[:-1]:
            assert list(kept_shares).index(stack[:-1]) < number
            assert share <= kept_shares[stack[:-1]]


def rows():
    return [
        row("profile", ";".join(stack), "", STACK, [of]) for stack, of in tree(STACKS, 0).items()
    ]


def test_a_box_is_as_wide_as_its_share_and_stands_on_its_caller():
    (axes,) = Flame("profile", "a title").draw(rows()).axes
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    places = [(box.get_x(), box.get_y(), box.get_width()) for box in boxes]
    assert places == [(0, 0, 80), (80, 0, 20), (0, 1, 60), (60, 1, 20)]


def test_stacks_are_in_no_table_of_the_page():
    table = row("profile", WORK, "", "per cent of the time", [60.0])
    (shown,) = page.tables([table, *rows()]).values()
    assert [line[0] for line in shown.rows] == [WORK]


def test_the_largest_items_are_listed_and_the_stacks_drawn(tiny, monkeypatch):
    commands = []

    def sampled(command):
        commands.append(command)
        Path(command[command.index("--output") + 1]).write_text(RAW)

    monkeypatch.setattr(profile, "_sampler", lambda: "py-spy")
    monkeypatch.setattr(profile, "seconds_of", sampled)
    result = profile.measure(tiny)
    listed = {(r.variant, r.metric): r.median for r in result.rows if r.metric != STACK}
    assert listed == {
        (WORK, "per cent of the time"): 60,
        (WORK, "with what it calls"): 60,
        (IMPORT, "per cent of the time"): 20,
        (IMPORT, "with what it calls"): 20,
        ("Python", "per cent of the time"): 20,
        ("Python", "with what it calls"): 20,
    }
    assert next(r.variant for r in result.rows if r.metric == STACK) == MAIN
    (command,) = commands
    assert command[0] == "py-spy"
    assert command[command.index("--method") + 1] == profile.METHOD


def test_a_sampler_that_is_missing_is_named(tiny, monkeypatch):
    monkeypatch.setattr(profile, "_sampler", lambda: None)
    result = profile.measure(tiny)
    assert result.rows == []
    assert "pip install 'vcl-radial[bench]'" in result.notes[0]
