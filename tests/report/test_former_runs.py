"""Runs of former versions are named in one line with the command that makes them again."""

import json
from pathlib import Path

import pytest

from vcl_radial.errors import UserError
from vcl_radial.report.former import former_runs
from vcl_radial.report.gather import gather


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def spec(method: str, seed: int) -> str:
    return f'benchmark = "synthetic"\nmethod = "{method}"\nseed = {seed}\n[data]\nsize = 64\n'


def test_each_kind_is_one_line_and_nothing_is_touched(tmp_path: Path):
    for method, seed in (("radial", 0), ("radial", 2), ("mfvi", 0)):
        write(
            tmp_path / "synthetic" / method / f"seed-{seed}-abc" / "spec.toml", spec(method, seed)
        )
    uci = {"unit": {"set": "yacht", "method": "bbb", "seed": 0, "splits": [0, 1], "slices": None}}
    write(tmp_path / "yacht" / "bbb" / "test-abc.json", json.dumps(uci))
    game = {"unit": {"dataset": "adult", "method": "badam", "seed": 4, "pulls": 3}}
    write(tmp_path / "adult" / "badam" / "seed-4-abc.json", json.dumps(game))
    write(tmp_path / "somebody" / "seed-1.json", "[]")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    paths, lines = former_runs(tmp_path)
    assert len(paths) == 5
    commands = {line.split("`")[1] for line in lines}
    assert commands == {
        "vcl-radial run retinopathy-synthetic --method mfvi radial --seeds 3",
        "vcl-radial run uci --method bbb --seeds 2",
        "vcl-radial run bandit-adult --method badam --seeds 5",
    }
    assert any(
        line.startswith(f"{tmp_path / 'synthetic'}: holds runs of a former") for line in lines
    )
    with pytest.raises(UserError, match="holds no finished run"):
        gather(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_runs_of_today_are_none_of_them(tmp_path: Path):
    folder = tmp_path / "retinopathy-synthetic" / "radial" / "seed-0-abc"
    write(folder / "spec.toml", 'track = "retinopathy"\n' + spec("radial", 0))
    stream = 'benchmark = "b"\nmethod = "m"\nseed = 0\n[stream]\ntasks = 2\n'
    write(tmp_path / "b" / "m" / "seed-0-abc" / "spec.toml", stream)
    assert former_runs(tmp_path) == (set(), [])
