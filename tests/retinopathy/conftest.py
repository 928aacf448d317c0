import pytest
import retinopathy_helpers


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def sites():
    """Two, of which the second one's photographs are brighter."""
    return retinopathy_helpers.two_sites()


@pytest.fixture
def prepared():
    return retinopathy_helpers.prepared()
