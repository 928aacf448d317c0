from dataclasses import replace

import pytest
import torch
from regression_helpers import toy

from vcl_radial.errors import UserError
from vcl_radial.tracks.regression import plan
from vcl_radial.tracks.regression.data import DIABETES, UCI_FOLDERS
from vcl_radial.tracks.regression.methods import METHODS
from vcl_radial.tracks.regression.plan import Benchmark, Method, choose, final_units, in_words
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.track import train_and_score
from vcl_radial.tracks.regression.units import Score, bundles

RECIPE = Recipe(method="variational", steps=40, batch_size=16, eval_samples=5)
GRID = [{"learning_rate": [1e-3, 1e-1], "batch_size": [16, 32]}, {"batch_size": [1000]}]


def bench(**keys):
    return Benchmark(sets=["diabetes"], methods=["mfvi"], **keys)


def test_every_shipped_file_is_valid_and_names_what_there_is():
    used = set()
    for name in plan.names("benchmark"):
        benchmark = plan.load_benchmark(name)
        assert benchmark.description
        assert set(benchmark.sets) <= {*UCI_FOLDERS, DIABETES}
        assert plan.load_methods(benchmark.methods, benchmark, {})
    for method in plan.load_methods(plan.names("method"), bench(), {}):
        used.add(method.recipe.method)
    assert used == METHODS.keys()


def test_settings_are_the_combinations_within_each_table_and_each_of_them_once():
    method = Method("m", RECIPE, [*GRID, {"learning_rate": [1e-1], "batch_size": [16]}])
    assert method.settings() == [
        {"learning_rate": 1e-3, "batch_size": 16},
        {"learning_rate": 1e-3, "batch_size": 32},
        {"learning_rate": 1e-1, "batch_size": 16},
        {"learning_rate": 1e-1, "batch_size": 32},
        {"batch_size": 1000},
    ]
    assert Method("m", RECIPE, []).settings() == [{}]


def test_a_set_or_a_method_that_is_named_twice_counts_once(tmp_path):
    twice = Benchmark(sets=["yacht", "diabetes", "yacht"], methods=["mfvi"])
    assert twice.sets == ["yacht", "diabetes"]
    again = plan.catalogue.folder("method") / "regression" / "mfvi.toml"
    methods = plan.load_methods(["mfvi", "linear", "mfvi", str(again)], bench(), {})
    assert [method.name for method in methods] == ["mfvi", "linear"]
    (tmp_path / "mfvi.toml").write_text('method = "badam"')
    with pytest.raises(UserError, match="two methods of one name; rename one of the files"):
        plan.load_methods(["mfvi", str(tmp_path / "mfvi.toml")], bench(), {})


def test_settings_are_tried_with_a_share_of_their_steps_and_the_best_gets_all(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('method = "badam"\nsteps = 300\nsearch_share = 0.5\n')
    grid = [{"learning_rate": [1e-3]}, {"batch_size": [1000], "steps": [50]}]
    benchmark = bench(grid=grid, search_share=0.1, recipe={"steps": 200})
    steps = {}
    for method in plan.load_methods(["mfvi", str(own)], benchmark, {}):
        tried = plan.validation_units(toy(), method, [0], 0.2, seed=0)
        final = [
            unit
            for setting in method.settings()
            for unit in final_units(toy(), method, {0: setting}, seed=0)
        ]
        steps[method.name] = [u.recipe.steps for u in tried], [u.recipe.steps for u in final]
    assert steps == {"mfvi": ([20, 5], [200, 50]), "own": ([100, 25], [200, 50])}
    # It may be so small that no step would be left.
    tiny = Method("m", RECIPE, GRID, 1e-9)
    assert {tiny.tried_with(setting).steps for setting in tiny.settings()} == {1}
    own.write_text('method = "badam"\nsearch_share = 1.5\n')
    with pytest.raises(UserError, match=r"own.toml: search_share = 1.5: input should be less than"):
        plan.load_methods([str(own)], bench(), {})


def test_what_the_user_sets_is_not_chosen():
    (method,) = plan.load_methods(["mfvi"], bench(grid=GRID), {"batch_size": 7})
    assert method.settings() == [{"learning_rate": 1e-3}, {"learning_rate": 1e-1}]
    assert {method.with_setting(s).batch_size for s in method.settings()} == {7}


def test_a_recipes_own_grid_and_the_users_keys_come_before_the_benchmarks():
    benchmark = bench(grid=GRID, recipe={"steps": 11, "batch_size": 12})
    dropout, mfvi = plan.load_methods(["mc-dropout", "mfvi"], benchmark, {"steps": 13})
    assert {"dropout", "learning_rate", "batch_size"} == dropout.settings()[0].keys()
    assert (mfvi.recipe.steps, mfvi.recipe.batch_size) == (13, 12)


def test_each_split_chooses_its_own_best_and_what_diverged_is_never_best():
    method = Method("m", RECIPE, [{"learning_rate": [1e-3, 1e-2, 1e-1]}])
    values = {0: (-3.0, -1.0, -2.0), 1: (float("nan"), -5.0, -4.0)}
    results = [
        [
            score
            for split in values
            for score in (
                Score(split, 0, "log_likelihood", values[split][k]),
                Score(split, 0, "rmse", -k),
            )
        ]
        for k in range(3)
    ]
    chosen = choose(method, [0, 1], results)
    assert chosen == {0: {"learning_rate": 1e-2}, 1: {"learning_rate": 1e-1}}
    units = final_units(toy(), method, chosen, seed=3)
    assert [(u.recipe.learning_rate, u.splits, u.seed) for u in units] == [
        (1e-2, [0], 3),
        (1e-1, [1], 3),
    ]
    assert all(unit.validation is None for unit in units)


def test_validation_scores_do_not_depend_on_the_test_rows():
    data = toy()
    y = data.y.clone()
    y[data.splits[1].test] = 1e6
    x = data.x.clone()
    x[data.splits[1].test] = -1e6
    poisoned = replace(data, x=x, y=y)
    one, other = (train_and_score(d, [1], [RECIPE], validation=0.2) for d in (data, poisoned))
    assert one == other
    assert train_and_score(data, [1], [RECIPE]) != train_and_score(poisoned, [1], [RECIPE])


def test_no_unit_is_lost_in_bundles_which_hold_no_more_lanes_than_they_may():
    method = Method("m", RECIPE, GRID)
    units = plan.validation_units(toy(), method, [0, 1, 2], 0.2, seed=0)
    found = bundles(units, lanes=6)
    assert sorted(u.model_dump_json() for b in found for u in b) == sorted(
        u.model_dump_json() for u in units
    )
    for bundle in found:
        assert sum(len(unit.splits) for unit in bundle) <= 6
        assert len({unit.recipe.batch_size for unit in bundle}) == 1
    # Two learning rates of one batch size are one program.
    assert sorted(len(bundle) for bundle in found) == [1, 2, 2]


def test_a_sequence_is_set_beside_all_rows_at_once_with_as_many_steps():
    in_sequence, at_once = plan.sequence_units(toy(), Method("m", RECIPE, []), [0], 5, seed=0)
    assert (in_sequence.slices, at_once.slices) == (5, 1)
    assert in_sequence.steps == at_once.steps == 200


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('sets = ["yacht"]\nmethods = ["mfvi"]\nslice = 3', "'slice'; the nearest known one"),
        ('sets = ["yacht"]', "the key 'methods' is missing"),
        ('sets = []\nmethods = ["mfvi"]', "sets = "),
        ('sets = ["yacht"]\nmethods = ["mfvi"]\nvalidation = 1.5', r"validation = 1\.5"),
        ('sets = ["yacht"]\nmethods = ["mfvi"]\nslices = 1', "slices = 1: .* or equal to 2"),
        ("sets = [", "not valid TOML"),
    ],
)
def test_a_faulty_benchmark_is_refused_in_one_line(tmp_path, content, words):
    (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(UserError, match=words) as error:
        plan.load_benchmark(str(tmp_path / "mine.toml"))
    assert "mine.toml" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "overrides", "words"),
    [
        ('method = "variational"\nstep = 3', {}, "'step'; the nearest known one is 'steps'"),
        ('method = "magic"', {}, "method = 'magic'"),
        ('method = "badam"', {"learning_rate": -1.0}, r"learning_rate = -1\.0"),
        ('method = "badam"\n[[grid]]\nsteps = [0]', {}, "steps = 0"),
        ('method = "badam"\n[[grid]]\nstep = [5]', {}, "'step'"),
        ('method = "badam"\ngrid = 3', {}, "grid"),
    ],
)
def test_a_faulty_recipe_is_refused_in_one_line(tmp_path, content, overrides, words):
    path = tmp_path / "mine.toml"
    path.write_text(content)
    with pytest.raises(UserError, match=words) as error:
        plan.load_methods([str(path)], bench(), overrides)
    assert "mine" in str(error.value)
    assert "\n" not in str(error.value)


def test_names_that_are_not_there_get_the_nearest_one():
    with pytest.raises(UserError, match="'radial'"):
        plan.load_methods(["radail"], bench(), {})
    with pytest.raises(UserError, match="'uci'"):
        plan.load_benchmark("uc")


def test_a_method_without_a_posterior_to_carry_is_refused_in_a_sequence():
    with pytest.raises(UserError, match="mc-dropout: has no posterior"):
        plan.load_methods(["mc-dropout"], bench(slices=3), {})


def test_the_draws_of_rdp_are_not_shared_with_another_setting():
    """Its lanes draw from one generator, so that a result would depend on who else is in it."""
    rdp = RECIPE.model_copy(update={"posterior": "rdp"})
    method = Method("m", rdp, [{"learning_rate": [1e-3, 1e-2]}])
    units = plan.validation_units(toy(), method, [0, 1], 0.2, seed=0)
    assert len(bundles(units, lanes=40)) == 2
    assert torch.equal(torch.tensor([len(u.splits) for u in units]), torch.tensor([2, 2]))


def test_a_setting_of_any_key_is_told():
    setting = {"learning_rate": 1e-4, "batch_size": 1000, "grouping": "unit"}
    assert in_words(setting) == "learning_rate=0.0001, batch_size=1000, grouping=unit"
