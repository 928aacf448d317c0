import numpy as np
import pytest
import torch
from scipy import optimize, stats

from reports.seeds.pruning.lenet.modes import choose_cuts, log_modes, scores, units_above
from reports.seeds.pruning.lenet.network import SETS
from reports.seeds.pruning.lenet.start import rdp_weights
from reports.seeds.pruning.settings import LeNetRecipe
from vcl_radial.nn.blocks import softplus
from vcl_radial.nn.linear import he_normal

SIZES = {"conv1": 20, "conv2": 50, "inputs": 800, "hidden": 500}


@pytest.fixture
def block():
    torch.manual_seed(0)
    recipe = LeNetRecipe(length=0.9, spread=0.5, prior_scale=1.0, prior_length=0.9)
    rows = rdp_weights(he_normal(5, 40), None, "row", recipe).rows
    with torch.no_grad():
        rows.loc += torch.randn_like(rows.loc)
        rows.rho += torch.randn_like(rows.rho)
    return rows


def test_the_log_mode_is_where_the_density_of_a_groups_own_radius_is_highest(block):
    for g, mode in enumerate(log_modes(block).tolist()):
        loc = block.loc[:, g].sum().item() / 2
        spread = softplus(block.rho)[:, g].square().sum().sqrt().item() / 2
        law = stats.lognorm(spread, scale=np.exp(loc))
        best = optimize.minimize_scalar(
            lambda y, law=law: -law.logpdf(np.exp(y)), bracket=(mode - 1, mode + 1)
        )
        assert best.x == pytest.approx(mode, abs=1e-4)


def test_a_layers_own_factors_stretch_all_radii_alike_and_decide_nothing(block):
    before = log_modes(block)
    with torch.no_grad():
        block.loc[:, -1] += 3.0
        block.rho[:, -1] += 1.0
    assert torch.equal(log_modes(block), before)


def modes(seed=0):
    g = torch.Generator().manual_seed(seed)
    sizes = {
        "conv1 rows": 20,
        "conv2 rows": 50,
        "conv2 columns": 20,
        "fc1 rows": 500,
        "fc1 columns": 800,
        "fc2 columns": 500,
    }
    return {group: torch.randn(n, generator=g) for group, n in sizes.items()}


def test_a_unit_is_as_strong_as_the_weaker_one_of_its_row_and_column():
    group_modes = modes()
    strengths = scores(group_modes)
    assert {name: len(units) for name, units in strengths.items()} == SIZES
    pair = torch.minimum(group_modes["fc1 rows"], group_modes["fc2 columns"])
    assert torch.equal(strengths["hidden"], pair)
    assert torch.equal(strengths["inputs"], group_modes["fc1 columns"])


def test_without_cuts_all_units_are_left():
    assert str(units_above(scores(modes()), {}).architecture) == "20-50-800-500"


def needed(strengths, numbers):
    """The strongest so many units of each set, and an error that rises by 1 for each one lost."""
    strong = {name: strengths[name].topk(numbers[name]).indices for name in SETS}

    def error(kept):
        return 1.0 + sum(int((~getattr(kept, name)[strong[name]]).sum()) for name in SETS)

    return error


def test_all_that_the_error_does_not_need_is_left_out_and_nothing_else():
    strengths = scores(modes())
    strengths["inputs"] = torch.arange(800.0)  # the last filters have the strongest inputs
    strengths["conv2"] = torch.arange(50.0)
    numbers = {"conv1": 3, "conv2": 7, "inputs": 100, "hidden": 40}
    cuts = choose_cuts(strengths, needed(strengths, numbers), tolerance=0.0)
    assert str(units_above(strengths, cuts).architecture) == "3-7-100-40"


def test_the_error_never_rises_by_more_than_the_tolerance():
    strengths = scores(modes(1))
    error = needed(strengths, SIZES)
    for tolerance, lost in ((0.0, 0), (20.0, 20)):
        kept = units_above(strengths, choose_cuts(strengths, error, tolerance))
        assert error(kept) <= 1.0 + tolerance
        left = sum(int(getattr(kept, name).sum()) for name in SETS)
        assert left >= sum(SIZES.values()) - lost
        assert (left < sum(SIZES.values())) == (lost > 0)
