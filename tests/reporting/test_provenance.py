"""What stands behind the numbers of a page."""

from types import SimpleNamespace

from vcl_radial.reporting.provenance import behind, different_recipes

RUN = {
    "commit": "abc",
    "device": "cpu",
    "processor": "a processor",
    "threads": 1,
    "packages": {"torch": "2", "vcl-radial": "0.1"},
    "seconds": {"training": 1800.0, "evaluation": 1800.0},
    "finished": "2026-01-31T12:00:00Z",
    "command": "vcl-radial run a",
}


def test_every_answer_is_there_once():
    later = RUN | {"finished": "2026-02-02T00:00:00Z", "seconds": 3600.0}
    facts = dict(behind([RUN, later, RUN], seeds=[1, 0, 1], evaluated_on=["test", "test"]))
    assert facts == {
        "evaluated on": ["test data"],
        "seeds": ["0, 1"],
        "commit": ["abc"],
        "device": ["cpu (a processor), 1 thread(s) a run, torch 2"],
        "finished": [
            "2026-01-31 to 2026-02-02; 3.00 hours of training and evaluation in all",
        ],
        "command": ["vcl-radial run a"],
    }


def test_a_commit_is_named_with_its_version_where_there_are_several():
    older = RUN | {"commit": None, "packages": {"vcl-radial": "0.0"}}
    commits = dict(behind([RUN, older]))["commit"]
    assert commits == ["abc of vcl-radial 0.1, none (no checkout) of vcl-radial 0.0"]


def test_what_an_older_version_did_not_write_down_is_unknown_or_left_out():
    facts = dict(behind([{"seconds": 60.0}], more=[("data", ["x"])]))
    assert facts["device"] == ["unknown (unknown), 1 thread(s) a run, torch unknown"]
    assert facts["finished"] == ["1.0 minutes of training and evaluation in all"]
    short = dict(behind([{"seconds": 0.42}]))
    assert short["finished"] == ["0.42 seconds of training and evaluation in all"]
    assert "command" not in facts
    assert next(iter(facts)) == "data"


def run_with(method, **recipe):
    return SimpleNamespace(method=method, spec=SimpleNamespace(recipe=recipe))


def test_a_line_names_how_long_methods_train_only_where_that_differs():
    same = [run_with("a", epochs=20, hidden=[8]), run_with("b", epochs=20, hidden=[8])]
    assert different_recipes(same) == []
    runs = [*same, run_with("c", epochs=1, hidden=[8]), run_with("c", epochs=1, hidden=[8])]
    assert different_recipes(runs) == [("methods differ in", ["epochs: 20 (a, b), 1 (c)"])]
