import numpy as np
import pytest
import torch

from reports.papers.analysis import Setting
from reports.seeds.badam import toy_regression as toy
from vcl_radial.reporting.figures.drawing import Curve
from vcl_radial.tracks.regression.lanes import vcl
from vcl_radial.tracks.regression.settings import Recipe

POINTS = torch.linspace(-0.5, 1.2, 18, dtype=torch.float64)


def recipe(**settings):
    return Recipe(
        **{"strategy": "badam", "posterior": "gaussian", "batch_size": 64, "steps": 400, **settings}
    )


def predict(how, x=None, y=None, hidden=12, **settings):
    if x is None:
        x, y = toy.make_data(0)
    return toy.predict_with(how, recipe(**settings), hidden, x, y, POINTS)


def test_the_data_are_the_papers():
    x, y = toy.make_data(0)
    assert len(x) == 200
    assert 0 <= float(x.min())
    assert float(x.max()) < 0.5
    # dy/de = 1 + 0.6 pi cos + 1.2 pi cos, so the targets' noise is at most 0.02 times its bound.
    bound = 1 + 1.8 * torch.pi
    noise = (y - toy.truth(x)).std()
    assert 0.02 * 0.1 < float(noise) < 0.02 * bound
    assert float(toy.truth(torch.tensor(0.0))) == 0
    assert float(toy.truth(torch.tensor(0.25))) == pytest.approx(0.25 + 0.3)


def test_the_network_has_two_hidden_layers():
    x, y = toy.make_data(0)
    shapes = []

    def look(job):
        learner = vcl.Lanes(job)
        (network,) = (lane.method.network for lane in learner.trainer.lanes)
        shapes.extend(layer.weights.shape for layer in (*network.body, network.head.output))
        return learner.learn()

    toy.predict_with(look, recipe(steps=1), 7, x, y, POINTS)
    assert shapes == [(7, 1), (7, 7), (1, 7)]


@pytest.mark.parametrize("name", list(toy.methods()))
def test_predictions_follow_the_units_of_the_targets(name):
    """y -> 3 y + 2 makes means and widths follow: everything happens on standardised data."""
    method, settings = toy.methods()[name]
    x, y = toy.make_data(0)
    settings = {**settings, "steps": 20}
    one = predict(method, x, y, **settings)
    other = predict(method, x, 3 * y + 2, **settings)
    torch.testing.assert_close(other.mean, 3 * one.mean + 2, rtol=1e-3, atol=2e-3)
    torch.testing.assert_close(other.sd, 3 * one.sd, rtol=1e-2, atol=1e-3)


def test_laplaces_variance_is_that_of_the_whole_posterior():
    """J (tau H + I / s^2)^-1 J' + 1 / tau, by an explicit inverse and autograd's Jacobian."""
    x, y = toy.make_data(0)
    kept = {}

    def keeping(job):
        kept["learner"] = toy.Laplace(job)
        kept["mixture"] = kept["learner"].learn()
        return kept["mixture"]

    toy.predict_with(keeping, recipe(steps=200), 4, x, y, POINTS)
    learner, mixture = kept["learner"], kept["mixture"]
    module = toy.lane_network(learner.lanes, 0)
    names = [name for name, _ in module.named_parameters()]
    values = tuple(p.detach() for p in module.parameters())

    def output(inputs):
        def f(*weights):
            return torch.func.functional_call(
                module, dict(zip(names, weights, strict=True)), inputs
            ).squeeze(1)

        blocks = torch.autograd.functional.jacobian(f, values)
        return torch.cat([block.flatten(1) for block in blocks], dim=1)

    J, J_new = (output(x.double()) for x in (learner.slices[0].x[0], learner.x[0]))
    tau = float(learner.noise.mean)
    covariance = torch.linalg.inv(tau * J.T @ J + torch.eye(J.shape[1], dtype=torch.float64))
    expected = ((J_new @ covariance) * J_new).sum(1) + 1 / tau
    torch.testing.assert_close(mixture.scale[0, 0].square(), expected, rtol=1e-6, atol=0)


def test_badam_and_laplace_have_the_same_mean():
    """The same weights: only the curvature differs."""
    badam = predict(toy.methods()[toy.BADAM][0], steps=100)
    laplace = predict(toy.learnt_by(toy.Laplace), steps=100)
    torch.testing.assert_close(badam.mean, laplace.mean)
    assert not torch.allclose(badam.sd, laplace.sd, rtol=0.05)


def test_vadam_learns_a_line():
    x = torch.linspace(-1, 1, 100, dtype=torch.float64)
    prediction = toy.predict_with(
        toy._vadam(0.1),
        recipe(steps=800, batch_size=1, learning_rate=1e-2),
        12,
        x,
        2 * x,
        POINTS,
    )
    amid = (POINTS > -0.5) & (POINTS < 0.9)
    assert float((prediction.mean - 2 * POINTS)[amid].abs().max()) < 0.25


def test_dropout_without_a_rate_to_speak_of_is_certain_of_its_function():
    low, high = (
        predict(toy.learnt_by(toy.Dropout), options={"rate": rate}, prior_scale=10.0, steps=150)
        for rate in (1e-6, 0.3)
    )
    # What is left is the noise, the same everywhere.
    torch.testing.assert_close(low.sd, low.sd[:1].expand_as(low.sd), rtol=1e-3, atol=0)
    assert float(high.sd.max() / high.sd.min()) > 1.1


def band(name, widths, error=0.0, panel="prediction"):
    """Widths at a few places, and between them on straight lines."""
    known = [-0.5, 0.25, 0.6, 0.8, 1.0, 1.2]
    x = sorted({round(-0.5 + 0.01 * k, 2) for k in range(171)} | set(known))
    widths = np.interp(x, known, widths)
    y = (toy.truth(torch.tensor(x, dtype=torch.float64)) + error).tolist()
    low = [a - 2 * w for a, w in zip(y, widths, strict=True)]
    high = [a + 2 * w for a, w in zip(y, widths, strict=True)]
    return Curve(panel, name, x, y, low, high)


def test_claims_are_decided_by_the_bands():
    wide, narrow = [1.0, 0.1, 0.3, 0.5, 1.0, 1.3], [0.2, 0.1, 0.1, 0.15, 0.2, 0.2]
    as_published = {toy.BADAM: wide, toy.LAPLACE: wide}
    curves = [band(name, as_published.get(name, narrow)) for name in toy.METHODS]
    assert toy.width(curves[0], 1.0) == pytest.approx(1.0)

    def claims(others):
        return toy._texts(curves, others, {"seed": 0, "steps_made": 1, "hidden": 1})["claims"]

    sensitive = [band("a", narrow, 0.5, "VADAM"), band("b", narrow, panel="VADAM")]
    assert all(c.because.endswith("it holds") for c in claims(sensitive))
    other_way = {toy.BADAM: narrow[::-1], toy.LAPLACE: [9 * w for w in wide]}
    curves = [band(name, other_way.get(name, wide)) for name in toy.METHODS]
    same = [band("a", wide, panel="VADAM"), band("b", wide, panel="VADAM")]
    assert all("it does not hold" in c.because for c in claims(same))


def test_the_analysis_draws_every_method_and_keeps_the_numbers(monkeypatch):
    monkeypatch.setattr(toy, "QUICK_STEPS", 30)
    monkeypatch.setattr(toy, "QUICK_HIDDEN", 6)
    done = toy.analyse(Setting(quick=True))
    names = {curve.name for curve in done.curves if curve.panel == "prediction"}
    assert names == set(toy.METHODS)
    assert len(done.figure.axes) == len(names)
    assert len(done.claims) == 4
