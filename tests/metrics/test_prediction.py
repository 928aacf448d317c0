"""Scores of predictions, against independent implementations and by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_calibration_error

from vcl_radial.metrics import accuracy, expected_calibration_error, nll


@pytest.fixture(params=[0, 1, 2])
def batch(request):
    generator = torch.Generator().manual_seed(request.param)
    logits = 3.0 * torch.randn(500, 7, generator=generator)
    labels = torch.randint(0, 7, (500,), generator=generator)
    labels[:200] = logits[:200].argmax(dim=1)
    return logits.log_softmax(dim=1), labels


def test_accuracy_agrees_with_torchmetrics(batch):
    log_probs, labels = batch
    expected = 100.0 * multiclass_accuracy(log_probs, labels, num_classes=7, average="micro").item()
    assert accuracy(log_probs, labels) == pytest.approx(expected, abs=1e-5)


def test_nll_agrees_with_torch(batch):
    log_probs, labels = batch
    assert nll(log_probs, labels) == pytest.approx(F.nll_loss(log_probs, labels).item(), rel=1e-6)


@pytest.mark.parametrize("bins", [1, 2, 10, 15])
def test_calibration_error_agrees_with_torchmetrics(batch, bins):
    log_probs, labels = batch
    expected = multiclass_calibration_error(log_probs.exp(), labels, num_classes=7, n_bins=bins)
    ours = expected_calibration_error(log_probs, labels, bins=bins)
    assert ours == pytest.approx(100.0 * expected.item(), abs=1e-4)


def test_with_one_bin_the_calibration_error_is_confidence_minus_accuracy(batch):
    log_probs, labels = batch
    confidence = 100.0 * log_probs.exp().amax(dim=1).mean().item()
    gap = abs(confidence - accuracy(log_probs, labels))
    assert expected_calibration_error(log_probs, labels, bins=1) == pytest.approx(gap, abs=1e-4)


@pytest.mark.parametrize(("label", "scores"), [(0, (100.0, 0.0, 0.0)), (1, (0.0, math.inf, 100.0))])
def test_a_certain_prediction_is_perfect_or_as_bad_as_can_be(label, scores):
    prediction = torch.tensor([[0.0, -math.inf]]), torch.tensor([label])
    assert tuple(f(*prediction) for f in (accuracy, nll, expected_calibration_error)) == scores


def test_a_uniform_prediction_has_the_entropy_as_nll():
    log_probs = torch.full((4, 10), -math.log(10.0))
    assert nll(log_probs, torch.arange(4)) == pytest.approx(math.log(10.0), rel=1e-6)


def test_a_confidence_on_the_edge_belongs_to_the_lower_bin():
    # Confidences 0.5 (right) and 0.6 (wrong). With two bins, ( 0, 0.5 ] and ( 0.5, 1 ] hold one
    # each: (|1 - 0.5| + |0 - 0.6|) / 2. In one common bin it would be |1 - 1.1| / 2.
    log_probs = torch.tensor([[0.5, 0.5], [0.6, 0.4]], dtype=torch.float64).log()
    error = expected_calibration_error(log_probs, torch.tensor([0, 1]), bins=2)
    assert error == pytest.approx(55.0)


@pytest.mark.parametrize("score", [accuracy, nll, expected_calibration_error])
@pytest.mark.parametrize(("rows", "labels"), [((3, 2), 2), ((3,), 3), ((0, 2), 0)])
def test_shapes_that_do_not_belong_together_are_refused(score, rows, labels):
    with pytest.raises(ValueError, match="must be"):
        score(torch.zeros(rows), torch.zeros(labels, dtype=torch.long))


def test_less_than_one_bin_is_refused():
    with pytest.raises(ValueError, match="bins"):
        expected_calibration_error(torch.zeros(1, 2), torch.zeros(1, dtype=torch.long), bins=0)
