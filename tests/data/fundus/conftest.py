from pathlib import Path

import pytest


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vcl_radial" / "fundus"


@pytest.fixture
def lines():
    """Lines for the user: pass `lines.append` as `report`."""
    return []


@pytest.fixture
def retinopathy(real_data: Path) -> Path:
    """The folder of real photographs."""
    folder = real_data / "retinopathy"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not a folder")
    return folder
