"""Methods with a posterior of their own take the keys of a recipe that describe one."""

import importlib
import math

import pytest
import torch
from failing import refuses
from scenarios import OF_CLASSES, digits

from vcl_radial.integrations.avalanche import ContinualStrategy
from vcl_radial.methods.registry import built_in_class
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import BayesianLinear, kl_divergence, variational_weights
from vcl_radial.posteriors import families
from vcl_radial.posteriors.rdp import HalfCauchyPrior
from vcl_radial.posteriors.weibull_radius import Weibull
from vcl_radial.tracks.continual import methods as continual
from vcl_radial.tracks.continual.methods import make_strategy
from vcl_radial.tracks.continual.networks import make_network
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.networks import posterior_of
from vcl_radial.tracks.regression.settings import Recipe as RowRecipe

OWN = ["badam", "vadam", "vogn", "ivon"]


def made(strategy, **keys):
    recipe = Recipe(
        **{"strategy": strategy, "posterior": "none", "hidden": [8], "optimizer": "adam", **keys}
    )
    return make_strategy(recipe, make_network(digits(), recipe))


@pytest.mark.parametrize("strategy", OWN)
def test_prior_noise_and_samples_are_those_of_the_recipe(strategy):
    learner = made(strategy, prior_scale=0.2, initial_noise=0.05, eval_samples=7)
    assert learner.model.eval_samples == 7
    assert learner.posterior.prior_precision == pytest.approx(1 / 0.2**2)
    noise = math.inf if strategy == "badam" else 0.05
    assert learner.posterior.initial_precision == pytest.approx(noise**-2)


@pytest.mark.parametrize("family", ["radial", "gaussian", "radial-eq44"])
@pytest.mark.parametrize("start", [{"initial_noise": 0.07}, {"initial_rho": -2.0}], ids=str)
def test_a_networks_posterior_is_the_recipes(family, start):
    grouping = {"radial": "unit", "gaussian": "layer", "radial-eq44": "tensor"}[family]
    keys = {"posterior": family, "grouping": grouping, "prior_scale": 0.3, "hidden": [8], **start}
    network = make_network(digits(), Recipe(strategy="vcl", **keys))
    blocks = next(variational_weights(network, [])).posterior_blocks()
    assert [len(b.mean) for b in blocks] == {"unit": [8], "layer": [1], "tensor": [1, 1]}[grouping]
    for block in blocks:
        assert block.family is families()[family]
        assert block.prior_scale.unique().tolist() == pytest.approx([0.3])
        if "initial_noise" in start:
            torch.testing.assert_close(block.weight_noise(), torch.full_like(block.mean, 0.07))
        else:
            scale = torch.full_like(block.mean, math.log1p(math.exp(-2)))
            torch.testing.assert_close(block.scale(), scale)


@pytest.mark.parametrize("family", ["low-rank", "radial-low-rank"])
def test_the_rank_is_the_recipes(family):
    keys = {"strategy": "vcl", "posterior": family, "hidden": [8], "rank": 3}
    recipe = Recipe(**keys)
    blocks = next(variational_weights(make_network(digits(), recipe), [])).posterior_blocks()
    assert [block.factor.shape for block in blocks] == [(1, 3, 64 * 8 + 8)]


OF_TRACKS = {"continual": 0.9, "retinopathy": 0.9, "bandits": 0.9, "regression": 0.5}
"""The length of a prior's directions in the recipes of each track: those of RDP's authors."""


@pytest.mark.parametrize("track", OF_TRACKS)
def test_every_track_has_the_length_of_the_first_priors_directions(track):
    recipe_of = importlib.import_module(f"vcl_radial.tracks.{track}.settings").Recipe
    keys = {"steps": 5} if track in ("bandits", "regression") else {}
    keys |= {"posterior": "rdp", "grouping": "row"}
    for recipe, length in (
        (recipe_of(**keys), OF_TRACKS[track]),
        (recipe_of(**keys, prior_length=0.3), 0.3),
    ):
        layer = posterior_of(recipe).make_weights(torch.ones(3, 4), None)
        assert layer.rows.prior == HalfCauchyPrior(recipe.prior_scale, length)
    with pytest.raises(ValueError, match="prior_length"):
        recipe_of(**keys, prior_length=1)


def test_weibull_radii_are_the_recipes_and_train_without_lanes():
    keys = {"posterior": "rdp", "grouping": "row", "radius": "weibull"}
    rows = RowRecipe(strategy="rdp_vcl", **keys)
    assert RowRecipe(strategy="rdp_vcl", **keys | {"radius": "log-normal"}).lane is not None
    assert rows.lane is None
    layer = posterior_of(rows).make_weights(torch.ones(3, 4), None)
    assert isinstance(layer.rows.posterior.factors, Weibull)
    layer.consolidate()
    assert isinstance(layer.rows.prior.factors, Weibull)
    assert layer.kl().item() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("strategy", ["vadam", "vogn", "ivon"])
def test_without_a_noise_the_recipes_rho_gives_it(strategy):
    learner = made(strategy, initial_rho=-3.0)
    noise = math.log1p(math.exp(-3))
    assert learner.posterior.initial_precision == pytest.approx(noise**-2)


def test_point_estimates_are_predicted_with_once():
    for strategy in {*OF_CLASSES} - {
        *OWN,
        "rdp_vcl",
        "mc_dropout",
        "laplace_linearised",
        "bayes_linear",
        "learning_body",
        "mesu",
        "sgld",
        "swag",
    }:
        assert built_in_class(strategy).recipe_keys == frozenset()
        if not issubclass(built_in_class(strategy), VCL):
            learner = made(strategy, eval_samples=7)
            assert learner.model.eval_samples == 1, strategy


@pytest.mark.parametrize("strategy", OWN)
def test_a_network_with_a_posterior_is_refused(strategy):
    with refuses(f"strategy = '{strategy}'", "posterior = 'none'"):
        made(strategy, posterior="gaussian")


def test_heads_of_several_tasks_need_a_body():
    with refuses("hidden = []"):
        made("naive", hidden=[])


def test_a_class_of_ones_own_gets_the_keys_that_its_constructor_names(monkeypatch):
    class Own(ContinualStrategy):
        def __init__(self, *, prior_scale=1.0, initial_noise=0.1, **settings):
            super().__init__(**settings)
            self.taken = prior_scale, initial_noise
            self.network.extra = BayesianLinear(2, 2)

        def penalty(self):
            return kl_divergence(self.network, self.tasks)

    monkeypatch.setattr(continual, "find_method", lambda name: Own)
    keys = {"prior_scale": 3.0, "initial_noise": 0.01, "eval_samples": 50}
    learner = made("own", **keys)
    assert learner.taken == (3.0, 0.01)
    assert learner.model.eval_samples == 50
    with_option = made("own", **keys, options={"prior_scale": 2.0})
    assert with_option.taken == (2.0, 0.01)
