"""Photographs are trained by every method that learns task by task, a user's own among them."""

import tomllib
from pathlib import Path

import pandas as pd
import pytest
import torch
from failing import fails, refuses
from retinopathy_helpers import Training, assert_stopping_changes_no_file, execute, recipe, run_of

from vcl_radial.cli import main
from vcl_radial.runs import planning
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.retinopathy.track import Retinopathy

METHOD = """
from vcl_radial.methods.base import Method


class Pull(Method):
    '''Hold the weights where the last site left them.'''

    def __init__(self, network, *, strength=1.0, **settings):
        super().__init__(network, **settings)
        self.strength, self.anchors = strength, None

    def penalty(self):
        if self.anchors is None:
            return 0.0
        pairs = zip(self.network.parameters(), self.anchors, strict=True)
        return self.strength * sum((w - anchor).square().sum() for w, anchor in pairs)

    def end_task(self, task):
        self.anchors = [w.detach().clone() for w in self.network.parameters()]

    def state_dict(self):
        return super().state_dict() | {"anchors": self.anchors}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.anchors = state["anchors"]
"""
AS_A_STRATEGY = {
    "vcl_radial.methods.base": "vcl_radial.integrations.avalanche",
    "Method": "ContinualStrategy",
    "self, network, *": "self, *",
    "network, **settings": "**settings",
    "end_task(self, task)": "consolidate(self, experience)",
}
"""What of the method reads otherwise where the same idea is a strategy."""
STRATEGY = METHOD
for of_method, of_strategy in AS_A_STRATEGY.items():
    STRATEGY = STRATEGY.replace(of_method, of_strategy)
STRATEGY += """

class Steps(Pull):
    def optimizer_step(self):
        self.optimizer.step()
"""


def points(strategy, **options):
    return {"strategy": strategy, "posterior": "none", "options": options}


FIRST_BODY = points("bayes_linear", features="first-task-body")


@pytest.mark.parametrize(
    "keys",
    [
        points("ewc", gamma=0.9),
        points("lwf"),
        points("vadam"),
        {"strategy": "gvcl", "posterior": "gaussian"},
    ],
    ids=lambda keys: keys["strategy"],
)
def test_a_method_is_carried_from_site_to_site(tmp_path, sites, keys):
    folder = RunFolder(tmp_path, run_of(**keys, epochs=1))
    execute(folder, sites)
    scores = pd.read_csv(folder.path / "scores.csv")
    assert set(scores["after"]) == {"one", "two"}
    history = pd.read_csv(folder.path / "history.csv")
    assert history["site"].tolist() == [0, 1]
    assert history["validation_auc"].between(0, 100).all()


def test_the_penalty_of_ewc_is_on_at_the_second_site_and_holds_the_weights(sites):
    moved = []
    for weight in (1.0, 1e8):
        keys = {**points("ewc"), "epochs": 1, "select": "last", "kl_weight": weight}
        first = Training(recipe(**keys), sites[0], seed=0)
        assert first.run_epoch()["kl"] == 0
        carried = first.carried()
        assert sum(fisher.sum() for fisher in carried["past"]["precision"].values()) > 0
        second = Training(recipe(**keys), sites[1], seed=0, number=1, start=carried)
        line = second.run_epoch()
        assert line["kl"] > 0
        assert line["loss"] > line["nll"]
        pairs = second.network.state_dict().items()
        moved.append(sum((w - carried["network"][name]).norm() for name, w in pairs))
    assert moved[1] < 0.7 * moved[0]


def test_the_first_site_of_ewc_is_trained_as_by_no_memory_at_all(sites):
    ends = []
    for strategy in ("ewc", "naive"):
        training = Training(recipe(**points(strategy)), sites[0], seed=0)
        training.run_epoch()
        ends.append(training.network.state_dict())
    assert all(torch.equal(w, ends[1][name]) for name, w in ends[0].items())


def test_a_body_of_the_first_site_is_selected_as_by_no_memory_at_all(sites):
    """By the validation AUC of its own head; the exact head knows nothing before the site ends."""
    lines, bodies = [], []
    for keys in (FIRST_BODY, points("naive")):
        training = Training(recipe(**keys), sites[0], seed=0)
        for _ in range(2):
            training.run_epoch()
        lines.append([{**line, "seconds": 0.0} for line in training.history])
        training.carried()
        bodies.append([w for w in training.network.parameters() if w.dim() == 4])
    assert lines[0] == lines[1]
    assert bodies[0]
    assert all(map(torch.equal, *bodies))


def test_replay_goes_on_training_on_the_photographs_of_the_first_site(sites):
    keys = {**points("replay", buffer_size=8), "epochs": 1}
    first = Training(recipe(**keys), sites[0], seed=0)
    first.run_epoch()
    carried = first.carried()
    assert len(carried["buffer"][0]) == 8
    second, sizes = Training(recipe(**keys), sites[1], seed=0, number=1, start=carried), []
    hook = second.network.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    second.run_epoch()
    hook.remove()
    assert sizes[0] == 16  # a batch of 8, and the buffer


@pytest.mark.parametrize("keys", [points("pulling_strategy:Pull"), FIRST_BODY])
def test_what_is_stopped_after_every_epoch_ends_with_the_same_files(
    tmp_path, sites, user_module, keys
):
    user_module("pulling_strategy", STRATEGY)
    run = run_of(**keys, epochs=2)
    whole, parts = (RunFolder(tmp_path / name, run) for name in ("whole", "parts"))
    execute(whole, sites)
    assert_stopping_changes_no_file(whole, parts, sites, 4)


def test_a_class_of_ones_own_is_trained_alike_as_a_method_and_as_a_strategy(
    tmp_path, sites, user_module
):
    histories, predictions = [], []
    for name, code in {"pulling_method": METHOD, "pulling_strategy": STRATEGY}.items():
        user_module(name, code)
        folder = RunFolder(tmp_path, run_of(**points(f"{name}:Pull", strength=3.0), epochs=1))
        execute(folder, sites)
        histories.append(pd.read_csv(folder.path / "history.csv").drop(columns="seconds"))
        predictions.append((folder.path / "predictions.csv").read_text())
        assert histories[-1]["kl"].iloc[0] == 0 < histories[-1]["kl"].iloc[1]
    assert histories[0].equals(histories[1])
    assert predictions[0] == predictions[1]


def test_runs_of_a_class_whose_file_was_edited_are_others(user_module):
    run = run_of(**points("edited_strategy:Pull"))
    digests = []
    for code in (STRATEGY, STRATEGY, STRATEGY + "# edited"):
        user_module("edited_strategy", code)
        digests.append(run.on_data(None).digest())
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.slow
def test_shipped_methods_are_run_by_their_names(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sets = "epochs=1 channels=2 batch_size=8 data.patients=60 data.validation=0.3 data.size=16"
    command = "run retinopathy-synthetic --method ewc si laplace-diagonal --device cpu --jobs 1"
    assert main([*command.split(), "--set", *sets.split()]) == 0
    assert len(list(tmp_path.glob("runs/retinopathy-synthetic/*/*/scores.csv"))) == 3


# What cannot be


@pytest.mark.parametrize(
    ("keys", "posteriors"),
    [
        ({"strategy": "ewc"}, ["'none'"]),
        ({"strategy": "vcl", "posterior": "none"}, ["'gaussian'", "'low-rank'"]),
    ],
)
def test_methods_that_the_track_cannot_serve_are_refused_by_name(prepared, keys, posteriors):
    with refuses(f"strategy = '{keys['strategy']}'", *posteriors):
        Training(recipe(**keys), prepared, seed=0)


def test_names_and_options_are_checked_before_a_run():
    for keys, named in (
        (points("ewx"), ["strategy = 'ewx'", "'ewc'"]),
        (points("ewc", gama=1.0), ["'gama'", "strategy = 'ewc'"]),
        (points("ewc", gamma="x"), ["options.gamma = 'x'"]),
    ):
        with refuses("m: ", *named):
            Retinopathy().check_runs([run_of(**keys)])


def test_an_impossible_option_is_named_before_photographs_are_decoded(monkeypatch):
    monkeypatch.setattr("vcl_radial.tracks.retinopathy.prepare.prepare", pytest.fail)
    for keys, named in (
        (points("mc_dropout", rate=1.0), "options.rate = 1.0"),
        (points("deep_ensemble", members=0), "options.members = 0"),
    ):
        with fails("m", named):
            Retinopathy().check_data([run_of(**keys)], None)


def test_a_strategy_with_a_step_of_its_own_is_refused_before_photographs_are_decoded(
    user_module, monkeypatch
):
    monkeypatch.setattr("vcl_radial.tracks.retinopathy.prepare.prepare", pytest.fail)
    user_module("stepping", STRATEGY)
    run = run_of(**points("stepping:Steps"))
    Retinopathy().check_runs([run])
    with fails("m", "Steps", "optimizer_step()"):
        Retinopathy().check_data([run], None)


def test_the_strategy_follows_from_the_posterior_where_none_is_named():
    assert recipe(posterior="radial").strategy == "vcl"
    assert recipe(posterior="none").strategy == "naive"
    by_name = {
        name: planning.plan("retinopathy-synthetic", [name], [0], {})[0].recipe
        for name in ("radial-vcl", "naive", "ewc")
    }
    assert [r.strategy for r in by_name.values()] == ["vcl", "naive", "ewc"]


@pytest.mark.parametrize(
    ("method", "posterior", "named"),
    [("radial-vcl", "none", "posterior = 'double-exponential'"), ("naive", "radial", "Naive")],
)
def test_a_posterior_that_is_not_the_methods_makes_no_other_method_of_it(method, posterior, named):
    runs = planning.plan("retinopathy-synthetic", [method], [0], {"posterior": posterior})
    with fails(method, named):
        Retinopathy().check_data(runs, None)


def test_every_recipe_of_the_suite_names_its_method():
    recipes = [*(Path(__file__).parents[2] / "baselines").rglob("*.toml")]
    assert len(recipes) > 50
    assert all("strategy" in tomllib.loads(path.read_text()) for path in recipes)
