"""Scores of a predictive distribution: accuracy, negative log-likelihood, calibration error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcl_radial.metrics.declared import declare, metric

if TYPE_CHECKING:
    from torch import Tensor


@metric("accuracy (%)", 2, "higher", "accuracy of the final network")
def accuracy(log_probs: Tensor, labels: Tensor) -> float:
    """Share of images whose most probable class is the right one.

        100/B Σ_b 1[ argmax_c log p(c | x_b) = y_b ]

    Args:
        log_probs: Natural logarithms of the predictive probabilities, `[B, C]`.
        labels: Classes from 0 to C-1, `[B]`.

    Returns:
        Per cent. Among equally probable classes the first one counts.

    Raises:
        ValueError: The shapes do not belong together, or the batch is empty.
    """
    _check_shapes(log_probs, labels)
    right = int((log_probs.argmax(dim=1) == labels).sum())
    return 100.0 * right / len(labels)


@metric("NLL (nats)", 3, "lower", "negative log-likelihood of the final network, over all tasks")
def nll(log_probs: Tensor, labels: Tensor) -> float:
    """Mean negative log-likelihood of the labels.

        -1/B Σ_b log p(y_b | x_b)

    Args:
        log_probs: Natural logarithms of the predictive probabilities, `[B, C]`.
        labels: Classes from 0 to C-1, `[B]`.

    Returns:
        Nats per image.

    Raises:
        ValueError: The shapes do not belong together, or the batch is empty.
    """
    _check_shapes(log_probs, labels)
    label_log_probs = log_probs.gather(1, labels.long().unsqueeze(1))
    return -float(label_log_probs.cpu().double().mean())


@metric("ECE (%)", 2, "lower", "calibration error of the final network, over all tasks", name="ece")
def expected_calibration_error(log_probs: Tensor, labels: Tensor, bins: int = 15) -> float:
    """Gap between confidence and accuracy, averaged over bins of equal width.

        ECE = 100 Σ_m |B_m| / B · | acc(B_m) - conf(B_m) |,
        B_m = images whose confidence max_c p(c | x) lies in ( (m-1)/M, m/M ]

    Guo et al., "On calibration of modern neural networks" (ICML 2017), Eq. 3.

    Args:
        log_probs: Natural logarithms of the predictive probabilities, `[B, C]`.
        labels: Classes from 0 to C-1, `[B]`.
        bins: The number of bins M.

    Returns:
        Per cent.

    Raises:
        ValueError: The shapes do not belong together, the batch is empty, or `bins` < 1.
    """
    import torch  # reports import this package and need no PyTorch

    _check_shapes(log_probs, labels)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    log_confidence, predicted = log_probs.max(dim=1)
    right = (predicted == labels).cpu().double()
    confidence = log_confidence.cpu().double().exp()
    inner_edges = torch.linspace(0.0, 1.0, bins + 1, dtype=torch.float64)[1:-1]
    bin_of_image = torch.bucketize(confidence, inner_edges)
    # |B_m| (acc - conf) is a sum over the images of the bin, so empty bins need no care.
    gaps = torch.bincount(bin_of_image, weights=right - confidence, minlength=bins)
    return 100.0 * float(gaps.abs().sum()) / len(labels)


_SAMPLING = "standard deviation of the predicted class's probability over draws of the weights"
declare("sampling", "sampling (%)", 3, None, _SAMPLING, "points")


def _check_shapes(log_probs: Tensor, labels: Tensor) -> None:
    if log_probs.ndim != 2 or labels.shape != log_probs.shape[:1] or len(labels) == 0:
        raise ValueError(
            "log_probs must be [B, C] and labels [B] with B >= 1, "
            f"got {list(log_probs.shape)} and {list(labels.shape)}"
        )
