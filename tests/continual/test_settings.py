import pytest
from pydantic import ValidationError

from vcl_radial.tracks.continual.settings import Recipe, StreamSettings


def test_the_default_recipe_is_the_papers_radial_one():
    recipe = Recipe()
    assert (recipe.strategy, recipe.posterior, recipe.grouping) == ("vcl", "radial", "layer")
    assert (recipe.optimizer, recipe.learning_rate) == ("amsgrad", 1e-3)
    assert (recipe.initial_rho, recipe.prior_scale) == (-6.0, 1.0)
    assert (recipe.epochs, recipe.batch_size, recipe.drop_last) == (20, 1024, True)
    assert recipe.hidden == [200] * 4


def test_settings_do_not_change_after_they_were_validated():
    with pytest.raises(ValidationError, match="frozen"):
        Recipe().epochs = 3


def test_a_whole_number_is_a_number_but_a_text_is_not():
    assert Recipe(learning_rate=1).learning_rate == 1.0
    with pytest.raises(ValidationError, match="learning_rate"):
        Recipe.model_validate({"learning_rate": "1"})


def test_only_a_data_set_must_be_named():
    settings = StreamSettings(dataset="digits")
    assert (settings.kind, settings.tasks, settings.heads) == ("split", 5, "multi")
    with pytest.raises(ValidationError, match="dataset"):
        StreamSettings()  # type: ignore[call-arg]
