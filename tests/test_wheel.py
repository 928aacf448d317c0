"""What `make build` makes: the wheel holds what a user runs, the sdist the code of the evidence."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]

DATA = (
    *("vcl_radial/py.typed", "vcl_radial/native/*.c", "vcl_radial/native/*.h"),
    "vcl_radial/reporting/page/*.*",
    *("vcl_radial/data/published.toml", "vcl_radial/data/fundus/layouts.toml"),
    "vcl_radial/tracks/*/published.csv",
    *("vcl_radial/tracks/retinopathy/report/published.csv", "vcl_radial-*.dist-info/*"),
    *(f"vcl_radial-*.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")),
)
"""What is neither Python nor a TOML of benchmarks/ and baselines/."""

pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel that is built from it; no network is used."""
    pytest.importorskip("hatchling")
    to = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", to, ROOT)
    return to


def _run(*command: object, **settings) -> str:
    answer = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **settings
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_the_wheel_holds_the_package_and_the_tomls_of_benchmarks_and_methods(built):
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
    code = {path.relative_to(ROOT).as_posix() for path in (ROOT / "vcl_radial").rglob("*.py")}
    tomls = {
        f"vcl_radial/{path.relative_to(ROOT).as_posix()}"
        for folder in ("benchmarks", "baselines")
        for path in (ROOT / folder).rglob("*.toml")
    }
    assert {name for name in names if name.endswith(".py")} == code
    assert tomls <= names
    others = names - code - tomls
    assert not {n for n in others if not any(PurePosixPath(n).match(kind) for kind in DATA)}


def test_the_sdist_holds_the_code_of_the_evidence_and_none_of_its_results(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("reports", "benchmarks/speed"):
        code = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py")}
        assert code
        assert code <= names
    assert not {n for n in names if n.startswith("reports/") and n.endswith((".png", ".gz", ".xz"))}


def test_the_wheel_lists_checks_and_runs_in_an_environment_of_its_own(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    site = _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # The dependencies are those of this environment, without its .pth files: one names a checkout.
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel
    )

    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = folder / "bin" / "vcl-radial"

    def vcl_radial(*arguments: str) -> str:
        return _run(command, *arguments, cwd=tmp_path, env=environment)

    file = _run(
        python, "-c", "import vcl_radial; print(vcl_radial.__file__)", cwd=tmp_path, env=environment
    )
    assert Path(file.strip()).is_relative_to(folder)
    listed = vcl_radial("list")
    assert "split-digits-multi-head" in listed
    assert "radial-vcl" in listed
    assert " 0 faults" in vcl_radial("check", "naive")
    tiny = ("--set", "epochs=1", "hidden=[8]", "eval_samples=2")
    printed = vcl_radial("run", "split-digits-multi-head", "--method", "radial-vcl", *tiny)
    assert "(%) ↑" in printed
    assert list(tmp_path.glob("runs/split-digits-multi-head/radial-vcl/seed-0*/done"))
