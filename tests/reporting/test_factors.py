"""Penalty, noise and grouping apart: each cell has the parts that its name says."""

import importlib
import math
from pathlib import Path

import pandas as pd
import pytest
import torch
from tiny_runs import TINY, tiny_run
from torch import nn
from torch.optim import SGD

from vcl_radial import native
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP, ClosedFormGradients, PosteriorSettings
from vcl_radial.posteriors import Gaussian, Radial, RadialEq44
from vcl_radial.posteriors.radial_kl import radial_kl
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.settings import StreamSettings
from vcl_radial.tracks.continual.track import Continual
from vcl_radial.tracks.continual.training import ContinualRun

PAGE = Path(__file__).parents[2] / "reports" / "central"
METHODS = sorted((PAGE / "methods").glob("*.toml"))
CELLS = {
    "RadialGaussian": (Radial, Gaussian),
    "RadialMean": (Radial, None),
    "Eq44Gaussian": (RadialEq44, Gaussian),
    "Eq44Mean": (RadialEq44, None),
    "GaussianRadial": (Gaussian, Radial),
    "GaussianMean": (Gaussian, None),
}
"""Penalty and noise."""
STREAM = StreamSettings(dataset="digits", tasks=2)


@pytest.fixture
def factors(monkeypatch):
    monkeypatch.syspath_prepend(str(PAGE))
    return importlib.import_module("factors")


def trained(posterior, strategy="vcl", **settings):
    recipe = tiny_run(posterior=posterior, strategy=strategy, **settings).recipe
    run = ContinualRun(STREAM, recipe, 0)
    list(run.finish_tasks())
    return run


def pair(family, prior_family, D=12):
    """A posterior and a prior of two groups, in float64."""
    generator = torch.Generator().manual_seed(3)
    mean, shift = torch.randn(2, 2, D, generator=generator).double()
    scale, other = torch.rand(2, 2, D, generator=generator).double() + 0.5
    return family(mean, scale), prior_family(mean + shift, other)


@pytest.mark.parametrize("name", CELLS)
class TestEveryCell:
    def test_the_penalty_is_that_of_its_family_bit_by_bit(self, factors, name):
        cell, (family, _) = getattr(factors, name), CELLS[name]
        for priors in ((cell, family), (Gaussian, Gaussian)):
            ours, theirs = pair(cell, priors[0]), pair(family, priors[1])
            assert torch.equal(ours[0].closed_kl(ours[1]), theirs[0].closed_kl(theirs[1]))
            a, s = torch.randn(2, 5), torch.rand(2, 5) + 0.5
            (one,) = cell.kl_gradients(priors[0], [(a.clone(), s.clone())])
            (other,) = family.kl_gradients(priors[1], [(a.clone(), s.clone())])
            assert all(map(torch.equal, one, other))

    def test_a_weight_has_the_noise_that_the_penalty_gives_to_it_or_none(self, factors, name):
        cell, (family, noise) = getattr(factors, name), CELLS[name]
        q, _ = pair(cell, Gaussian)
        spread = (q.sample(20_000, torch.Generator().manual_seed(1)) - q.mean).square().mean(0)
        expected = q.scale / family.scale_for_weight_noise(1.0, q.group_size)
        torch.testing.assert_close(spread.sqrt(), expected * (noise is not None), rtol=0.05, atol=0)

    def test_the_weights_of_a_group_share_a_radius_where_noise_is_radial(self, factors, name):
        cell, noise = getattr(factors, name), CELLS[name][1]
        q = cell(torch.zeros(500).double(), torch.ones(500).double())
        norm = q.sample(4_000, torch.Generator().manual_seed(1)).norm(dim=-1)
        half_normal, chi = math.sqrt(math.pi / 2 - 1), 1 / math.sqrt(2 * 500)
        ratio = {Radial: half_normal, Gaussian: chi}
        if noise is not None:
            assert float(norm.std() / norm.mean()) == pytest.approx(ratio[noise], rel=0.05)

    def test_training_has_its_gradient_in_closed_form(self, factors, name):
        settings = PosteriorSettings(getattr(factors, name), "unit")
        assert ClosedFormGradients.serves(MLP(6, 3, hidden=(5,), posterior=settings))

    @pytest.mark.slow
    def test_a_run_learns_and_its_draws_move_predictions_where_there_is_noise(self, factors, name):
        run = trained(f"factors:{name}", epochs=20, hidden=[32], batch_size=64, initial_noise=0.02)
        assert run.average_accuracy() > 60
        accuracy = run.accuracy()
        sampling = accuracy[(accuracy.metric == "sampling") & (accuracy.task_trained > 0)].value
        assert (sampling > 0).all() == (CELLS[name][1] is not None)
        assert (sampling == 0).all() == (CELLS[name][1] is None)


@pytest.fixture
def _same_noise(monkeypatch):
    """The compiled pass draws what PyTorch draws."""
    monkeypatch.setattr(native, "standard_normal", lambda out: out.normal_())


@pytest.mark.usefixtures("_same_noise")
@pytest.mark.parametrize("grouping", ["layer", "unit"])
@pytest.mark.parametrize(
    ("shipped", "family", "draws"),
    [
        ("radial", "Radial", "radial_draws"),
        ("radial-eq44", "RadialEq44", "radial_draws"),
        ("gaussian", "Gaussian", "gaussian_draws"),
    ],
)
def test_a_penalty_with_its_own_noise_is_the_shipped_family(
    factors, user_module, shipped, family, draws, grouping
):
    user_module(
        f"whole_{family.lower()}",
        "import factors\n"
        f"from vcl_radial.posteriors import {family}\n"
        f"class Cell({family}):\n"
        f"    noise = factors.{draws}\n"
        f"    kl_gradients = {family}.kl_gradients\n",
    )
    keys = {"grouping": grouping, "initial_rho": -3.0, "epochs": 3}
    ours, theirs = (
        trained(posterior, **keys).method.network.state_dict()
        for posterior in (f"whole_{family.lower()}:Cell", shipped)
    )
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, theirs[key], rtol=1e-3, atol=1e-4)


def test_prediction_by_the_mean_network_leaves_training_as_it_is(factors):
    keys = {"initial_rho": -2.0, "epochs": 3}
    sampled, mean = trained("radial", **keys), trained("radial", "factors:MeanPrediction", **keys)
    states = [run.method.network.state_dict() for run in (sampled, mean)]
    tensors = [[v for v in state.values() if isinstance(v, torch.Tensor)] for state in states]
    assert all(map(torch.equal, *tensors))
    points = nn.Sequential(*(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 5)))
    network = mean.method.network
    for layer, bayesian in zip(
        (points[0], points[2]), (network.body[0], network.head.head(1)), strict=True
    ):
        weight, bias = bayesian.weights.mean()
        layer.load_state_dict({"weight": weight, "bias": bias})
    x = mean.stream.inputs(1, "test")
    predicted = mean.method.predict(x, 1)
    torch.testing.assert_close(predicted, points(x).log_softmax(-1))
    assert not predicted.requires_grad
    tables = [run.accuracy() for run in (sampled, mean)]
    assert not tables[0].equals(tables[1])
    assert (tables[1].value[tables[1].metric == "sampling"] == 0).all()


def lasso(factors, groups="layer"):
    """After a task, at the weights that it has left; a step of SGD has given gradients."""
    torch.manual_seed(0)
    network = MLP(6, 3, hidden=(5,), posterior=None)
    method = factors.GroupLasso(network, groups=groups)
    task = Task(0, 4, lambda: iter(()), heads=[0])
    method.begin_task(task)
    batch = Batch(torch.randn(4, 6), torch.tensor([0, 1, 2, 0]))
    method.learn(batch, SGD(network.parameters(), lr=0.1))
    assert method.penalty() == 0  # the first task has none
    method.end_task(task)
    method.begin_task(task)
    return method


@pytest.mark.parametrize("groups", ["layer", "unit"])
def test_the_group_lasso_is_the_length_of_each_groups_shift_times_the_root_of_its_size(
    factors, groups
):
    method = lasso(factors, groups)
    assert method.penalty() == 0
    with torch.no_grad():
        method.network.body[0].weight[2] += 3.0
        method.network.body[0].bias[2] += 4.0
        method.network.body[0].bias[4] += 2.0
    lengths = {"layer": [(9 * 6 + 16 + 4, 35)], "unit": [(9 * 6 + 16, 7), (4, 7)]}[groups]
    expected = sum(math.sqrt(square * size) for square, size in lengths)
    assert float(method.penalty()) == pytest.approx(expected, rel=1e-5)


def test_the_group_lasso_has_no_gradient_where_the_last_task_ended(factors):
    method = lasso(factors)
    weights = list(method.parameters_in_use().values())
    gradients = torch.autograd.grad(method.penalty(), weights)
    assert all((gradient == 0).all() for gradient in gradients)


def test_the_group_lasso_is_the_cone_of_the_corrected_penalty():
    D, sigma, shift = 5_000, 0.05, 1e-6
    a = torch.full((1, D), shift / sigma / math.sqrt(D)).double()  # ||w - w*|| = shift
    at = radial_kl(torch.stack([a, 0 * a]), torch.ones(2, 1, D).double())
    slope = float(at[0] - at[1]) / shift
    tau = sigma / math.sqrt(D)
    assert slope == pytest.approx(math.sqrt(math.pi / 2) / tau * math.sqrt(D), rel=1e-3)


@pytest.mark.parametrize("path", METHODS, ids=lambda path: path.stem)
def test_every_method_of_the_page_runs_and_has_a_description(tmp_path, path):
    (run,) = plan("split-digits-multi-head", [str(path)], [0], TINY)
    Continual().check_runs([run])
    execute(Continual(), run.on_data(None), RunContext(tmp_path))
    (done,) = tmp_path.rglob("accuracy.csv")
    assert len(pd.read_csv(done))
    assert RunFolder(tmp_path, run.on_data(None)).finished()
    assert path.read_text().startswith('description = "')
