"""The carried shapes of a linear model: what is exact, what is optimal, and what each loses."""

import itertools
import math
from pathlib import Path

import pandas as pd
import pytest
import torch

from reports import pages
from reports.price import measure as measuring
from reports.price.carry import Model, carry, carry_radial, precisions
from reports.price.measure import measure
from reports.price.page import draw
from reports.price.radial import RadialShape
from reports.price.shapes import DIAGONAL, FULL, MOMENTS, blocks, low_rank
from reports.price.tasks import LinearStream, LinearTask, Points, unit_vectors
from vcl_radial.methods.bayes_linear import Sums

D, C, TASKS = 12, 3, 3
WEIGHTS = torch.randn(D, C, generator=torch.Generator().manual_seed(7))

TEMPLATE = Path(pages.__file__).parent / "price" / "README.md.jinja"


def points(task, rows):
    draw = torch.Generator().manual_seed(10 * task + rows % 7)
    mix = torch.randn(D, D, generator=torch.Generator().manual_seed(task)) / math.sqrt(D)
    phi = torch.randn(rows, D, generator=draw) @ mix
    noise = 0.3 * torch.randn(rows, C, generator=draw)
    return Points(phi, (phi @ WEIGHTS + noise).argmax(1))


def task(number, rows=120):
    learned = points(number, rows)
    sums = Sums.over([(learned.phi, unit_vectors(learned.y, C))], torch.zeros(D, C).double())
    return LinearTask(sums, learned, points(number, 40), points(number, 80))


@pytest.fixture(scope="module")
def stream():
    return LinearStream("rows", "accuracy", [task(number) for number in range(TASKS)])


@pytest.fixture(scope="module")
def model(stream):
    return Model.of(stream.tasks[0].sums)


def carried(stream, model, shape, weight=1.0):
    return list(carry(stream, model, precisions(stream, model, shape), weight))


def exactly(stream, model):
    return carried(stream, model, FULL)


def test_the_full_posterior_of_a_sequence_is_that_of_all_points_at_once(stream, model):
    total = stream.tasks[0].sums + stream.tasks[1].sums + stream.tasks[2].sums
    precision = total.squared + model.alpha * torch.eye(D)
    last = exactly(stream, model)[-1]
    torch.testing.assert_close(last.precision, precision)
    torch.testing.assert_close(last.mean, torch.linalg.solve(precision, total.cross))
    backwards = LinearStream("", "accuracy", stream.tasks[::-1])
    torch.testing.assert_close(exactly(backwards, model)[-1].mean, last.mean)


def test_the_divergence_to_the_exact_posterior_is_that_of_its_definition(stream, model):
    exact = exactly(stream, model)[-1]
    assert exact.divergence(exact, model.noise) == pytest.approx(0, abs=1e-9)
    q = carried(stream, model, DIAGONAL)[-1]
    normals = [
        torch.distributions.MultivariateNormal(
            posterior.mean.T, precision_matrix=model.noise * posterior.precision
        )
        for posterior in (q, exact)
    ]
    reference = float(torch.distributions.kl_divergence(*normals).sum())
    assert q.divergence(exact, model.noise) == pytest.approx(reference, rel=1e-9)


@pytest.mark.parametrize("shape", [DIAGONAL, blocks(4), low_rank(3)], ids=lambda s: s.name)
def test_a_projection_is_the_nearest_of_its_family(stream, model, shape):
    """KL(q || p) has no slope along the scales, which every family may change."""
    precision = exactly(stream, model)[-1].precision
    scales = torch.zeros(D, dtype=torch.float64, requires_grad=True)
    projected = shape.project(precision, 1e-6)
    Q = torch.diag((scales / 2).exp()) @ projected @ torch.diag((scales / 2).exp())
    objective = torch.logdet(Q) + torch.trace(precision @ torch.linalg.inv(Q))
    objective.backward()
    assert scales.grad.abs().max() < 2e-2


def test_moments_keep_the_variances(stream, model):
    precision = exactly(stream, model)[-1].precision
    kept = torch.linalg.inv(MOMENTS.project(precision, 0))
    torch.testing.assert_close(kept.diagonal(), torch.linalg.inv(precision).diagonal())


def test_a_precision_of_low_rank_plus_diagonal_is_kept():
    draw = torch.Generator().manual_seed(0)
    factor = torch.randn(2, D, generator=draw, dtype=torch.float64) * 3
    diagonal = 1 + torch.rand(D, generator=draw, dtype=torch.float64)
    precision = factor.T @ factor + diagonal.diag()
    torch.testing.assert_close(
        low_rank(2).project(precision, 1e-6), precision, rtol=0.05, atol=0.05
    )


def test_the_picture_tells_radial_shapes_apart_and_has_no_dot_at_a_kl_of_0():
    names = ["full", "rank 2", "radial by unit", "radial by layer", "radial by unit, Eq. 44"]
    rows = [
        {"stream": "rows", "shape": name, "seed": 0, "chosen": "both", "scored_by": "rmse"}
        | {"score": 1.0, "kl": float(k), "bytes": 10.0 + k, "forgetting": 0.0, "weight": 1.0}
        | {"nll": math.nan, "ece": math.nan}
        for k, name in enumerate(names)
    ]
    of_score, of_kl = (
        [line for line in axes.lines if line.get_marker() in "os"]
        for axes in draw(pd.DataFrame(rows)).axes
    )
    assert (len(of_score), len(of_kl)) == (5, 4)
    looks = {(dot.get_marker(), dot.get_markerfacecolor() == "none") for dot in of_kl[1:]}
    assert len(looks) == 3


def test_the_page_says_where_the_best_weight_is_and_its_tests_are_one_family(tmp_path):
    scores = {"diagonal, KL(q||p)": {1: 60.0}, "full": {1: 80.0}}
    scores["radial by unit"] = {1: 20.0, 10: 30.0, 100: 25.0}
    scores["radial by unit, Eq. 44"] = {1: 20.0, 10: 21.0, 100: 41.0}
    lines = pd.DataFrame(
        [
            dict.fromkeys(("forgetting", "kl", "nll", "ece", "bytes"), 1.0)
            | {"stream": "s", "seed": seed, "scored_by": "accuracy", "shape": shape}
            | {"weight": float(weight), "score": score}
            | {"chosen": "both" if score == max(of_shape.values()) else "none"}
            | {"command": "c", "settings": "", "commit": "a", "processor": "p", "seconds": 1.0}
            for shape, of_shape in scores.items()
            for weight, score in of_shape.items()
            for seed in range(8)
        ]
    )
    lines.to_csv(tmp_path / "results.csv.gz", index=False)
    (text,) = pages.render([TEMPLATE], tmp_path).values()
    assert "radial by unit 20.0, 30.0, 25.0 (weights 1, 10, 100)" in text
    assert "radial by unit, Eq. 44 21.0, 41.0 (weights 10, 100, the largest weight tried)" in text
    p = 3 * 2 / 2**8  # of three tests
    assert f"full +20.0 ± 0.0 (p = {p:.2g}); radial by unit -30.0 ± 0.0 (p = {p:.2g})" in text


def test_more_numbers_lose_less(stream, model):
    exact = exactly(stream, model)[-1]
    losses = [
        carried(stream, model, shape)[-1].divergence(exact, model.noise)
        for shape in (DIAGONAL, low_rank(2), low_rank(5), FULL)
    ]
    assert all(more > 1.01 * less for more, less in itertools.pairwise(losses))
    assert losses[-1] == pytest.approx(0, abs=1e-9)


def test_a_radial_group_of_one_weight_is_a_gaussian(stream, model):
    """D = 1: the optimum, which is searched for, is the mean-field one in closed form."""
    of_weights = list(carry_radial(stream, model, RadialShape("weight", corrected=True)))
    gaussian = carried(stream, model, DIAGONAL)
    exact = exactly(stream, model)[-1]
    for one, other in zip(of_weights, gaussian, strict=True):
        torch.testing.assert_close(one.mean, other.mean, rtol=1e-3, atol=1e-4)
    divergences = [q[-1].divergence(exact, model.noise) for q in (of_weights, gaussian)]
    assert divergences[0] == pytest.approx(divergences[1], rel=1e-3)


def loss_of_second_task(stream, model, shape):
    """As a function of means and scales in groups, by the suite's own KL; and the optimum."""
    first, second = list(carry_radial(stream, model, shape))[:2]
    sums, n = stream.tasks[1].sums, second.q.mean.shape[-1]
    by_weight = shape.in_groups(sums.squared.diagonal()[:, None].expand(D, C))

    def loss(mean, scale):
        weights = mean.reshape(C, D).T
        fit = ((sums.squared @ weights - 2 * sums.cross) * weights).sum()
        fit = model.noise / 2 * (fit + (by_weight * scale.square()).sum() / n)
        return fit + type(second.q)(mean, scale).kl(first.q).sum()

    return loss, second.q.mean.clone(), second.q.scale.clone()


@pytest.mark.parametrize("grouping", ["unit", "layer"])
def test_equation_44_has_its_optimum_in_closed_form(stream, model, grouping):
    """The loss has no slope there."""
    loss, mean, scale = loss_of_second_task(stream, model, RadialShape(grouping, corrected=False))
    loss(mean.requires_grad_(), scale.requires_grad_()).backward()
    assert mean.grad.abs().max() < 1e-6 * model.noise
    assert (scale.grad * scale).abs().max() < 1e-6


@pytest.mark.parametrize("grouping", ["unit", "layer"])
def test_the_optimum_of_the_corrected_kl_is_found(stream, model, grouping):
    """No step makes the loss less by a twentieth of a nat; where means rest it has an edge."""
    loss, mean, scale = loss_of_second_task(stream, model, RadialShape(grouping, corrected=True))
    draw = torch.Generator().manual_seed(0)
    least = float(loss(mean, scale)) - 0.05
    for size in (0.01, 0.1):
        for _ in range(50):
            a, b = torch.randn(2, *mean.shape, generator=draw, dtype=torch.float64) * size
            assert float(loss(mean + a * scale, scale)) > least
            assert float(loss(mean, scale * b.exp())) > least
        for grown in (size, -size):
            assert float(loss(mean, scale * math.exp(grown))) > least


def test_the_divergence_of_a_radial_posterior_agrees_with_monte_carlo(stream, model):
    exact = exactly(stream, model)[0]
    q = next(carry_radial(stream, model, RadialShape("unit", corrected=True)))
    draws = q.q.sample(20_000, torch.Generator().manual_seed(0))
    p = torch.distributions.MultivariateNormal(
        exact.mean.T, precision_matrix=model.noise * exact.precision
    )
    cross = -p.log_prob(draws).sum(-1)
    reference = float(cross.mean() - q.q.entropy().sum())
    spread = float(cross.std()) / math.sqrt(len(draws))
    assert q.divergence(exact, model.noise) == pytest.approx(reference, abs=5 * spread)


def test_at_a_large_weight_nothing_moves(stream, model):
    after = carried(stream, model, DIAGONAL, weight=1e12)
    torch.testing.assert_close(after[-1].mean, after[0].mean, rtol=1e-4, atol=1e-6)


def test_the_table_has_a_choice_for_every_shape(stream, monkeypatch):
    monkeypatch.setattr(measuring, "WEIGHTS", (1.0, 30.0, 1e5))
    monkeypatch.setattr(measuring, "RADIAL_WEIGHTS", (1.0, 30.0))
    lines = pd.DataFrame(measure(stream, 0))
    for _, shape in lines.groupby("shape"):
        (two,) = shape[shape["chosen"].isin(["two tasks", "both"])].to_dict("records")
        (oracle,) = shape[shape["chosen"].isin(["oracle", "both"])].to_dict("records")
        assert oracle["score"] == shape["score"].max()
        assert two["two_tasks"] == shape["two_tasks"].max()
        assert math.isfinite(two["nll"])
        assert two["kl"] >= -1e-6
