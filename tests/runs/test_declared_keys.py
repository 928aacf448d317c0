"""A key of a recipe is declared once; lanes, digests and the catalogue follow from that."""

import pytest

from vcl_radial.config.ranges import Count, Positive
from vcl_radial.runs import tracks
from vcl_radial.runs.keys import Key, declared
from vcl_radial.runs.settings import UNNAMED_TABLE
from vcl_radial.tracks.continual import lane_runs
from vcl_radial.tracks.continual.settings import Recipe, Run, StreamSettings


class Longer(Recipe):
    """A recipe as it would be after a key has been added."""

    warmth: Positive = Key(1.0, "a later key", lanes="may differ", digest="unless default")
    prior_scale: Positive = 0.5
    batch_size: Count = 32


class LongerRun(Run):
    recipe: Longer


def run_of(recipe):
    kind = LongerRun if isinstance(recipe, Longer) else Run
    stream = StreamSettings(dataset="digits")
    return kind(benchmark="b", method="m", seed=0, stream=stream, recipe=recipe)


def test_another_default_keeps_the_rest_of_a_declaration():
    assert declared(Longer, lanes="may differ") == {*lane_runs.MAY_DIFFER, "warmth"}
    assert declared(Longer, of="method") == declared(Recipe, of="method")
    assert declared(Longer, lanes="may differ", digest="unless default") == {"warmth"}


def test_a_later_key_leaves_the_digests_of_results_from_before_it():
    before = run_of(Recipe(prior_scale=0.5, batch_size=32)).digest()
    assert run_of(Longer()).digest() == before
    assert run_of(Longer(warmth=1.0)).digest() == before
    assert run_of(Longer(warmth=2.0)).digest() != before
    assert run_of(Longer(batch_size=33)).digest() != before
    assert run_of(Longer()).settings()["recipe"]["warmth"] == 1.0


@pytest.mark.parametrize("track", tracks.names())
def test_every_key_of_a_recipe_is_declared_with_its_meaning(track):
    model = tracks.find(track).spec.model_fields[UNNAMED_TABLE].annotation
    assert declared(model) == {*model.model_fields}


@pytest.mark.parametrize("track", tracks.names())
def test_what_a_method_is_means_the_same_in_every_track(track):
    model = tracks.find(track).spec.model_fields[UNNAMED_TABLE].annotation
    assert declared(model, of="method") == declared(Recipe, of="method")
