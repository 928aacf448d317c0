import pytest


@pytest.fixture(autouse=True)
def ivon_package(request):
    """Its package is optional."""
    if "ivon" in request.node.name.lower():
        pytest.importorskip("ivon")


@pytest.fixture(params=[True, False], ids=["multi-head", "single-head"])
def multi_head(request):
    """Whether each task has a head, or one head serves all."""
    return request.param
