"""The folder of a method is a model: the mean over its seeds."""

import shutil

import pytest
import torch
from failing import fails, refuses

import vcl_radial as vr
from vcl_radial.data.streams import load_dataset

X = load_dataset("digits").test_x[:12]


@pytest.fixture
def seeds(finished_run, tmp_path):
    """The folder of a method with three seeds."""
    for seed in range(3):
        source = finished_run(seed=seed)
        shutil.copytree(source, tmp_path / "radial-vcl" / source.name)
    return tmp_path / "radial-vcl"


def test_seeds_predict_by_their_mean_and_all_draws_count(seeds):
    ensemble, models = vr.load(seeds), [vr.load(path) for path in sorted(seeds.iterdir())]
    probs = torch.stack([model.predict(X, 1) for model in models])
    assert torch.allclose(ensemble.predict(X, 1), probs.mean(0), atol=1e-6)
    assert torch.equal(ensemble.draws(X, 2, 7, 1), torch.cat([m.draws(X, 2, 7, 1) for m in models]))
    y = torch.zeros(len(X), dtype=torch.int64)
    assert torch.allclose(ensemble.log_prob(X, y, 1).exp(), probs.mean(0)[:, 0], atol=1e-6)
    # The entropy of the mean is at least the mean entropy; the expected one is the seeds' mean.
    entropy, mutual, expected = ensemble.uncertainty(X, 1)
    alone = [model.uncertainty(X, 1) for model in models]
    mean = torch.stack([part.expected_entropy for part in alone]).mean(0)
    assert torch.allclose(expected, mean, atol=1e-6)
    within = torch.stack([part.mutual_information for part in alone]).mean(0)
    assert (mutual >= within - 1e-6).all()
    assert torch.allclose(entropy, mutual + expected, atol=1e-6)


def test_without_a_task_the_ensemble_infers_one(seeds):
    ensemble = vr.load(seeds)
    entropies = torch.stack([ensemble.uncertainty(X, task).entropy for task in range(5)])
    assert torch.equal(ensemble.infer(X), entropies.argmin(0))
    assert torch.equal(ensemble.to("cpu").predict(X), ensemble.predict(X))


def test_an_ensemble_has_no_network_of_its_own(seeds):
    ensemble = vr.load(seeds)
    for name in ("network", "posterior"):
        with refuses("models"):
            getattr(ensemble, name)
    assert ensemble.models[2].posterior


def test_a_seed_alone_is_that_model_and_runs_of_other_settings_are_refused(seeds, finished_run):
    one, two, three = sorted(seeds.iterdir())
    for path in (two, three):
        shutil.rmtree(path)
    assert torch.equal(vr.load(seeds).predict(X), vr.load(one).predict(X))
    other = finished_run(epochs=2)
    shutil.copytree(other, seeds / other.name)
    with fails(seeds):
        vr.load(seeds)
    with fails(seeds.parent, "--no-model"):
        vr.load(seeds.parent)
