"""A user's own image and IDX files by the command line alone."""

import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vcl_radial.data.data_files import IDX_NAMES
from vcl_radial.data.streams import datasets
from vcl_radial.reporting import files
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.settings import Run

TINY = ["--set", "epochs=1", "eval_samples=1"]


@pytest.fixture
def run(command, monkeypatch):
    """Run without pictures, which take longer than the runs."""
    monkeypatch.setattr(files, "draw", lambda *_: b"")
    datasets._checksum.cache_clear()  # as in a process of its own
    return lambda *arguments: command("run", *arguments, "--jobs", "1", "--device", "cpu")


@pytest.fixture
def flowers(tmp_path) -> Path:
    """Four classes of twelve colour images of 9x8 pixels."""
    random = np.random.default_rng(0)
    for name in ("aster", "daisy", "lily", "rose"):
        (tmp_path / "flowers" / name).mkdir(parents=True)
        for k in range(12):
            pixels = random.integers(0, 256, (8, 9, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "flowers" / name / f"{k}.png")
    return tmp_path / "flowers"


def specs() -> list[dict]:
    return [tomllib.loads(path.read_text()) for path in sorted(Path("runs").rglob("spec.toml"))]


def test_a_folder_of_colour_images_runs_without_a_line_of_python(run, flowers):
    (flowers / "rose" / "about.txt").touch()
    code, out, err = run(
        *("image-folder-multi-head", "--data-dir", "flowers", "--method", "radial-vcl", "ewc"),
        *TINY,
    )
    assert code == 0
    assert err == [
        "flowers: files that are no images by their ending, or no images of a class, are left out "
        "(1, the first is flowers/rose/about.txt)"
    ]
    assert "\nimage-folder-multi-head on flowers\n" in out
    for spec in specs():
        assert spec["recipe"]["network"] == "convnet"
        assert spec["stream"]["tasks"] == 2
        assert spec["stream"]["data_name"] == "flowers"
    (page,) = Path("runs/report").glob("*.html")
    assert "aster, daisy" in page.read_text()


def test_a_folder_whose_name_is_not_in_utf_8_is_reported_under_a_visible_name(run, flowers):
    folder = flowers.rename(os.fsdecode(b"flowers\xff"))
    arguments = ["image-folder-multi-head", "--data-dir", str(folder), "--method", "naive"]
    code, out, err = run(*arguments, *TINY, "network=mlp")
    assert (code, err) == (0, [])
    assert "\nimage-folder-multi-head on flowers\\udcff\n" in out


def test_any_split_benchmark_takes_an_image_folder_with_the_mlp_too(run, flowers):
    code, out, err = run(
        *("split-digits-single-head", "--data-dir", "flowers", "--method", "naive", *TINY),
        *("stream.dataset=image-folder", "stream.tasks=2", "stream.image_size=4", "batch_size=8"),
    )
    assert (code, err) == (0, [])
    assert "split-digits-single-head on flowers" in out
    (spec,) = specs()
    assert "network" not in spec["recipe"]
    assert spec["stream"]["image_size"] == 4


def test_idx_files_are_reported_under_the_name_of_their_folder(run, tmp_path):
    random = np.random.default_rng(0)
    (tmp_path / "letters").mkdir()
    for name, n in zip(IDX_NAMES, (40, 40, 8, 8), strict=True):
        shape = (n, 8, 8) if "images" in name else (n,)
        values = random.integers(0, 256, shape) if "images" in name else np.arange(n) % 4
        header = bytes([0, 0, 8, len(shape)]) + b"".join(s.to_bytes(4, "big") for s in shape)
        (tmp_path / "letters" / name).write_bytes(header + values.astype(np.uint8).tobytes())
    arguments = [
        *("split-digits-multi-head", "--data-dir", "letters", "--method", "naive", *TINY),
        *("stream.dataset=idx-folder", "stream.tasks=2", "batch_size=8"),
    ]
    code, out, err = run(*arguments, "network=convnet")
    assert (code, err) == (0, [])
    assert "\nsplit-digits-multi-head on letters\n" in out
    (tmp_path / "letters").rename(tmp_path / "renamed")
    code, out, _ = run(*[a.replace("letters", "renamed") for a in arguments], "network=convnet")
    assert "all 1 runs were finished before" in out  # content tells data apart, not the name


BAD = ["image-folder-multi-head", "--data-dir", "flowers", "--method", "naive", *TINY]


@pytest.mark.parametrize(
    ("damage", "start"),
    [
        (
            lambda f: (f / "lily/3.png").write_bytes(b"x"),
            "flowers/lily/3.png: ",
        ),
        (
            lambda f: (f / "rose").rename("rose"),
            "tasks: ",
        ),
    ],
)
def test_a_bad_folder_is_one_line_and_leaves_nothing_behind(run, flowers, damage, start):
    damage(Path("flowers"))
    code, out, err = run(*BAD)
    assert (code, out, len(err)) == (1, "", 1)
    assert err[0].startswith(f"vcl-radial: {start}")
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("stream.tasks=3", "stream.tasks = 3"),
        ("stream.tasks=4", "stream.tasks = 4"),
        ("stream.first_tasks=3", "stream.first_tasks = 3"),
        ("stream.class_order=[0,1]", "stream.class_order = [0, 1]"),
    ],
)
def test_tasks_that_do_not_fit_the_folder_are_refused_before_an_image_is_read(
    run, flowers, monkeypatch, setting, shown
):
    monkeypatch.setattr(datasets, "load_image_folder", None)
    settings = [setting] if "tasks" in setting else [setting, "stream.tasks=2"]
    code, _, err = run(*BAD, *settings)
    assert (code, len(err)) == (1, 1)
    assert err[0].startswith(f"vcl-radial: image-folder-multi-head: {shown}")


def test_what_is_finished_stays_when_the_folder_goes_bad(run, flowers):
    assert run(*BAD)[0] == 0
    before = {path: path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()}
    Image.new("RGB", (10, 8)).save("flowers/lily/3.png")
    datasets._checksum.cache_clear()  # as in another process
    code, _, err = run(*BAD)
    assert code == 1
    assert err == [
        "vcl-radial: flowers/aster/0.png: has 9x8 pixels, but flowers/lily/3.png 10x8: give all "
        "images one size, or have them resized with --set stream.image_size=N (pixels)"
    ]
    assert {p: p.read_bytes() for p in Path("runs").rglob("*") if p.is_file()} == before


def test_keys_of_an_image_folder_are_refused_for_other_data(run):
    for key in ("image_size=8", "test_share=0.3", "test_seed=1"):
        code, _, err = run("split-digits-multi-head", "--set", f"stream.{key}")
        assert code == 1
        assert len(err) == 1
        assert "stream.dataset = 'image-folder'" in err[0]


def test_images_too_small_for_the_convnet_are_said_to_be_before_any_training(run, flowers):
    code, _, err = run(
        *("image-folder-multi-head", "--data-dir", "flowers", "--method", "naive", *TINY),
        "stream.image_size=7",
    )
    assert code == 1
    assert all(named in err[0] for named in ("convnet", "8x8 pixels", "7, 7]"))
    assert not specs()


def planned(benchmark: str, **settings) -> Run:
    (run,) = plan(benchmark, ["naive"], [0], settings)
    return run


def test_mlp_is_the_default_network():
    run = planned("split-digits-multi-head")
    assert planned("split-digits-multi-head", network="mlp") == run
    assert planned("split-digits-multi-head", network="convnet").digest() != run.digest()


def test_what_decides_which_images_are_seen_is_in_the_digest_and_the_name_is_not():
    run = planned("image-folder-multi-head")
    named = run.stream.model_copy(update={"data_name": "flowers"})
    assert run.model_copy(update={"stream": named}).digest() == run.digest()
    for key in ({"stream.image_size": 8}, {"stream.test_share": 0.3}, {"stream.test_seed": 1}):
        assert planned("image-folder-multi-head", **key).digest() != run.digest()


@pytest.mark.parametrize(
    ("classes", "heads", "tasks"),
    [(2, "multi", 1), (4, "multi", 2), (9, "multi", 3), (10, "single", 5), (7, "single", 7)],
)
def test_classes_are_dealt_out_two_to_a_task_or_as_few_as_divide_them(classes, heads, tasks):
    from vcl_radial.data.streams.choices import default_tasks

    assert default_tasks(classes, heads) == tasks
