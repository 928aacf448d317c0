import pytest

from vcl_radial.config.installed import GROUP


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
