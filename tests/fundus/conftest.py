import os
from pathlib import Path

import pytest

from vcl_radial.data_files import DATA_VARIABLE


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vcl_radial" / "fundus"


@pytest.fixture
def told():
    """Lines for the user: pass `told.append` as `tell`."""
    return []


@pytest.fixture
def retinopathy() -> Path:
    """The folder of real photographs."""
    folder = Path(os.environ.get(DATA_VARIABLE, "/nowhere")) / "retinopathy"
    if not folder.is_dir():
        pytest.skip(f"{DATA_VARIABLE} does not name a folder with retinopathy/ in it")
    return folder
