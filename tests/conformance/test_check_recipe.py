from pathlib import Path

import pytest

from vcl_radial.conformance import recipe_for
from vcl_radial.errors import UserError


def test_a_recipe_keeps_its_own_keys_but_for_the_sizes(tmp_path: Path):
    toml = tmp_path / "mine.toml"
    toml.write_text(
        'description = "d"\nstrategy = "l2"\nposterior = "none"\nhidden = [500]\n'
        "learning_rate = 0.5\n[options]\nstrength = 3\n"
    )
    recipe = recipe_for(str(toml))
    assert (recipe.strategy, recipe.posterior, recipe.learning_rate) == ("l2", "none", 0.5)
    assert recipe.hidden == [32]
    assert recipe.options == {"strength": 3}


def test_what_is_set_overrides_recipe_and_sizes(tmp_path: Path):
    toml = tmp_path / "mine.toml"
    toml.write_text("learning_rate = 0.5\n[options]\nstrength = 3\nmemory = 4\n")
    settings = {"hidden": [7], "learning_rate": 0.25, "options.strength": 5}
    recipe = recipe_for(str(toml), settings)
    assert (recipe.hidden, recipe.learning_rate) == ([7], 0.25)
    assert recipe.options == {"strength": 5, "memory": 4}


def test_a_class_is_checked_as_a_recipe_that_names_nothing_else():
    assert recipe_for("their_package.module:Class").strategy == "their_package.module:Class"


def test_a_name_of_the_list_is_its_recipe_and_other_names_are_strategies():
    assert recipe_for("gaussian-vcl").posterior == "gaussian"
    assert recipe_for("vcl").strategy == "vcl"


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        ("navie", {}, "unknown method 'navie'; the nearest is 'naive'"),
        ("naive", {"epoch": 1}, "unknown key 'epoch'; the nearest known one is 'epochs'"),
        ("naive", {"epochs": 0}, "epochs = 0: input should be greater"),
        ("naive", {"evaluate_on": "test"}, "evaluate_on: a check brings its own data"),
        ("naive", {"options": 3}, "options = 3: must be a table"),
    ],
)
def test_what_is_wrong_is_one_line(target, settings, message):
    with pytest.raises(UserError) as caught:
        recipe_for(target, settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
