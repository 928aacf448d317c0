import pytest
import torch


@pytest.fixture(autouse=True)
def _own_threads():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
