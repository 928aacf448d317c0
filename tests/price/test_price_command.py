"""The command: it fills a table, goes on where it stopped, and draws the page."""

import shlex

import pandas as pd
import pytest

from reports.__main__ import main
from reports.price import measure
from reports.price.command import _command
from reports.price.sequences import plan
from reports.price.streams import stream_of
from vcl_radial.cli.arguments import DONE, FAILED, parse_setting
from vcl_radial.errors import UserError

SMALL = ("--set", "options.units=12")


@pytest.fixture(autouse=True)
def few_weights_and_shapes(monkeypatch):
    monkeypatch.setattr(measure, "WEIGHTS", (1.0, 30.0))
    monkeypatch.setattr(measure, "RADIAL", measure.RADIAL[2:3])


def price(to, *arguments):
    return main(["price", "diabetes-sequence", *arguments, "--to", str(to), *SMALL])


@pytest.mark.drawn
def test_a_folder_has_table_page_and_picture_and_is_filled_once(tmp_path, capsys):
    assert price(tmp_path) == DONE
    first = (tmp_path / "results.csv.gz").read_bytes()
    assert "rank 2: RMSE (standard deviations) 0." in capsys.readouterr().out
    assert price(tmp_path) == DONE
    assert "rank 2" not in capsys.readouterr().out
    assert (tmp_path / "results.csv.gz").read_bytes() == first
    page = (tmp_path / "README.md").read_text()
    table = pd.read_csv(tmp_path / "results.csv.gz", keep_default_na=False)
    for shape in set(table["shape"]):
        assert f"| {shape.replace('|', chr(92) + '|')} |" in page
    assert "`python -m reports price diabetes-sequence --set options.units=12 --seeds 1`" in page
    last = page.removesuffix("\n\n</details>\n")
    assert last.endswith(("less than 1 minute", " 1 minute"))
    assert (tmp_path / "price.png").stat().st_size > 10_000


def test_a_page_that_no_price_wrote_stays(tmp_path, capsys):
    (tmp_path / "README.md").write_text("mine")
    assert price(tmp_path) == FAILED
    assert "README.md" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.slow
def test_a_benchmark_of_the_users_own_is_measured(tmp_path):
    benchmark = tmp_path / "mine.toml"
    benchmark.write_text('[stream]\ndataset = "digits"\nheads = "single"\n')
    assert main(["price", str(benchmark), "--to", str(tmp_path), *SMALL]) == 0
    assert "accuracy (%)" in (tmp_path / "README.md").read_text()


def test_a_table_of_the_users_own_is_measured_once(tmp_path, capsys):
    rows = [f"{a},{a * a % 7},{a % 5}" for a in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    benchmark = tmp_path / "mine.toml"
    table = 'table = "rows.csv"\ntarget = "y"\nslices = 3\n'
    benchmark.write_text(f'track = "regression"\n[data]\n{table}')
    for _ in range(2):
        assert main(["price", str(benchmark), "--to", str(tmp_path), *SMALL]) == 0
    assert capsys.readouterr().out.count("mine/rows seed 0  full:") == 1


def test_the_command_of_a_page_can_be_pasted_into_a_shell(tmp_path):
    (spec,) = plan(["uci-sequence"], [0], {"data.sets": ["yacht"], "options.units": 9})
    assert spec.data.set == "yacht"
    command = _command("uci-sequence", {"data.sets": ["yacht"], "options.evidence": True})
    parts = shlex.split(command)
    assert parts[:5] == ["python", "-m", "reports", "price", "uci-sequence"]
    settings = dict(map(parse_setting, parts[parts.index("--set") + 1 :]))
    assert settings == {"data.sets": ["yacht"], "options.evidence": True}


def test_more_seeds_are_added_and_a_commit_of_digits_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("vcl_radial.runs.environment.loaded", lambda: "0123456789e1")
    assert price(tmp_path) == DONE
    assert price(tmp_path, "--seeds", "2") == DONE
    assert set(pd.read_csv(tmp_path / "results.csv.gz")["seed"]) == {0, 1}
    assert "commit 0123456789e1" in (tmp_path / "README.md").read_text()


def test_other_features_and_another_stream_want_another_folder(tmp_path, capsys):
    assert price(tmp_path) == DONE
    table = (tmp_path / "results.csv.gz").read_bytes()
    command = ["price", "diabetes-sequence", "--to", str(tmp_path), "--set"]
    for other in (["options.units=9"], [SMALL[1], "data.slices=3"]):
        assert main([*command, *other]) == FAILED
        assert f"{tmp_path / 'results.csv.gz'}: " in capsys.readouterr().err
    assert (tmp_path / "results.csv.gz").read_bytes() == table


@pytest.mark.parametrize(
    ("benchmark", "settings", "key"),
    [
        ("diabetes", {}, "diabetes"),  # one task
        ("retinopathy-synthetic", {}, "retinopathy-synthetic"),
        ("bandit-mushroom", {}, "bandit-mushroom"),
        ("split-digits-multi-head", {}, "split-digits-multi-head"),
        ("diabetes-sequence", {"options.features": "first-task-body"}, "options.features"),
    ],
)
def test_what_is_no_sequence_of_a_linear_model_is_refused(benchmark, settings, key):
    with pytest.raises(UserError) as error:
        stream_of(plan([benchmark], [0], settings)[0])
    assert error.value.key == key


def test_a_damaged_table_is_named(tmp_path, capsys):
    (tmp_path / "results.csv.gz").write_text("stream,seed\nx,0\n")
    assert price(tmp_path) == FAILED
    assert f"{tmp_path / 'results.csv.gz'}: " in capsys.readouterr().err
