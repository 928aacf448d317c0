import pytest
import torch

from vcl_radial.data.streams import build_stream, to_avalanche
from vcl_radial.installed import GROUP
from vcl_radial.nn import MLP, PosteriorSettings

SETTINGS = {"kind": "split", "dataset": "digits", "tasks": 5}


@pytest.fixture(autouse=True)
def ivon_package(request):
    """Its package is optional."""
    if "ivon" in request.node.name.lower():
        pytest.importorskip("ivon")


@pytest.fixture(scope="session")
def multi_head_stream():
    return build_stream({**SETTINGS, "heads": "multi"})


@pytest.fixture(scope="session")
def single_head_stream():
    return build_stream({**SETTINGS, "heads": "single"})


@pytest.fixture(scope="session")
def multi_head_benchmark(multi_head_stream):
    return to_avalanche(multi_head_stream)


@pytest.fixture(scope="session")
def single_head_benchmark(single_head_stream):
    return to_avalanche(single_head_stream)


@pytest.fixture(params=["multi_head", "single_head"])
def scenario(request):
    """Whether it has many heads, the stream, and its benchmark."""
    kind = request.param
    stream = request.getfixturevalue(f"{kind}_stream")
    return kind == "multi_head", stream, request.getfixturevalue(f"{kind}_benchmark")


@pytest.fixture
def make_network():
    def make(posterior="radial", multi_head=True, **settings):
        torch.manual_seed(0)
        if isinstance(posterior, str):
            posterior = PosteriorSettings(posterior, **settings)
        return MLP(
            64, 2 if multi_head else 10, hidden=(32,), multi_head=multi_head, posterior=posterior
        )

    return make


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Make packages that look installed, each with entry points; give the folder of each."""

    def install(package, **points):
        folder = tmp_path / package
        metadata = folder / f"{package}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {target}" for name, target in points.items()]
        (metadata / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]))
        monkeypatch.syspath_prepend(folder)
        return folder

    return install
