"""What a track cannot do for a method is said from its class, before any run starts."""

import pytest

from vcl_radial.cli import main
from vcl_radial.errors import UserError
from vcl_radial.runs import planning, tracks

TRACKS = {
    "regression": "diabetes",
    "bandits": "bandit-mushroom",
    "retinopathy": "retinopathy-synthetic",
}
OWN = """
from vcl_radial.methods.base import Method
from vcl_radial.methods.joint import Joint
from vcl_radial.integrations.avalanche import ContinualStrategy
from vcl_radial.integrations.avalanche.methods import SingleTask


class Plain(Method):
    needs_whole_stream = False


class Chooses(Plain):
    if True:
        def select(self, points):
            return None


class Patient(Joint):
    pass


class OneByOne(Joint):
    needs_whole_stream = False


class Strategy(ContinualStrategy):
    pass


class Single(SingleTask):
    pass


class Named(Joint):
    def __init__(self, network, **settings):
        super().__init__(network, **settings)


Made = type("Made", (Named,), {})
"""
NUMBERS = {"regression", "bandits"}

CASES = [
    ("joint", None, ()),
    ("single_task", None, ()),
    ("coreset_vcl", "selects points where a task begins", {"bandits"}),
    ("lwf", "serves a categorical likelihood, and here it is", NUMBERS),
    ("bayes_linear", "learns one number in closed form", {"bandits"}),
    ("own_unserved:Made", None, ()),
    ("own_unserved:Single", "is an Avalanche strategy, which", NUMBERS),
    ("own_unserved:Patient", None, ()),
    ("own_unserved:Chooses", "selects points where a task begins", {"bandits"}),
    ("own_unserved:Strategy", "is an Avalanche strategy, which", NUMBERS),
    ("own_unserved:Plain", None, ()),
    ("own_unserved:OneByOne", None, ()),
]


@pytest.mark.parametrize("track", TRACKS)
@pytest.mark.parametrize(("strategy", "reason", "refused"), CASES)
def test_a_track_refuses_what_it_cannot_serve(track, strategy, reason, refused, user_module):
    user_module("own_unserved", OWN)
    posterior = "gaussian" if strategy == "coreset_vcl" else "none"
    settings = {"strategy": strategy, "posterior": posterior}
    runs = planning.plan(TRACKS[track], ["naive"], [0], settings)
    if track in refused:
        with pytest.raises(UserError, match=f"^naive: strategy = '{strategy}' {reason}"):
            tracks.find(track).check_runs(runs)
    else:
        tracks.find(track).check_runs(runs)


def test_a_refusal_is_one_line(capsys):
    assert main(["run", "diabetes", "--method", "naive", "lwf"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vcl-radial: lwf: strategy = 'lwf' serves a categorical likelihood")
