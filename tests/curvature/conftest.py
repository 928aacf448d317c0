"""What tests of curvature share."""

import pytest
import torch


@pytest.fixture
def double_precision():
    """Tensors are float64 by default, and random numbers start afresh."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)
