import csv
import gzip
import math
import os

import pytest
import torch
from failing import data_fails, fails
from matplotlib.figure import Figure
from torch import nn

from reports import pages as engine
from reports.analysis import (
    cost,
    cost_methods,
    gradient_variance,
    images,
    prior_penalty,
    soap_bubble,
    truncated_noise,
    two_posteriors,
)
from reports.analysis.fitting import Recipe
from reports.papers import command, compute, picture
from reports.papers.analysis import Analysis, Setting
from reports.papers.catalogue import figures, pages
from reports.seeds.badam import toy_regression
from vcl_radial.errors import UserError
from vcl_radial.metrics.verdicts import Verdict
from vcl_radial.nn import BayesianLinear, PointLinear
from vcl_radial.reporting.blocks import Claim
from vcl_radial.reporting.figures.drawing import Curve, to_csv


def call(*words):
    """The command alone, as the whole command line calls it."""
    options = command.parser("python -m reports").parse_args([*map(str, words)])
    return options.command(options)


def read(folder):
    return engine.records(folder, figures())


def small_network(posterior, drop):
    linear = BayesianLinear(784, 10, posterior=posterior) if posterior else PointLinear(784, 10)
    return nn.Sequential(nn.Flatten(), nn.Dropout(drop), linear)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Sizes at which an analysis takes a second."""
    monkeypatch.setattr(images, "TRAIN", 120)
    monkeypatch.setattr(images, "TEST", 60)
    monkeypatch.setattr(soap_bubble, "_NUMBERS", 3e4)
    monkeypatch.setattr(soap_bubble, "_FEWEST_DRAWS", 20)
    monkeypatch.setattr(soap_bubble, "CONV_64", 900)
    monkeypatch.setattr(soap_bubble, "SIZES", (1, 10, 100, 900, 2000))
    monkeypatch.setattr(gradient_variance, "QUICK_CHANNELS", (2, 4))
    monkeypatch.setattr(gradient_variance, "_PAIRS", {2: 2, 4: 2})
    monkeypatch.setattr(prior_penalty, "QUICK_LAYER", 500)
    monkeypatch.setattr(two_posteriors, "QUICK", Recipe(12, 16, 2e-2, 2e-2, 1))
    monkeypatch.setattr(two_posteriors, "QUICK_SIZE", 16)
    monkeypatch.setattr(truncated_noise, "HIDDEN", (16,))
    monkeypatch.setattr(truncated_noise, "RECIPE", Recipe(1, 60, 3e-3, 3e-3, 1))
    small = dict.fromkeys(cost.ARCHITECTURES, small_network)
    monkeypatch.setattr(cost, "ARCHITECTURES", small)
    monkeypatch.setattr(toy_regression, "QUICK_STEPS", 30)
    monkeypatch.setattr(toy_regression, "QUICK_HIDDEN", 6)
    monkeypatch.setattr(cost, "BATCH", 4)
    monkeypatch.setattr(cost_methods, "BATCH", 4)
    monkeypatch.chdir(tmp_path)
    two_posteriors.train_both.cache_clear()
    yield
    two_posteriors.train_both.cache_clear()


@pytest.fixture
def drawn(monkeypatch):
    """Analyses that are done at once, and say which they are."""
    done = []

    def at_once(name, setting):
        done.append((name, setting))
        curve = Curve("panel", "line", [1.0, 2.0], [0.1, math.pi], [0.0, 3.0], [0.2, 3.5])
        claims = [
            Claim("that |w| is small", "it is", Verdict.REPRODUCED, "unsaid"),
            Claim("that it is large", "it is not", Verdict.NOT_REPRODUCED, "it is small"),
        ]
        setting.say(f"working on {name}")
        return Analysis(
            title="A title",
            source="Fig. 0",
            shown=["Text."],
            settings=[("D", "3")],
            curves=[curve],
            figure=Figure(),
            claims=claims,
            notes=["A note."],
        )

    monkeypatch.setattr(compute, "compute", at_once)
    return done


@pytest.mark.slow
@pytest.mark.drawn
def test_all_analyses_write_picture_numbers_and_page(tiny, tmp_path, capsys):
    to = tmp_path / "new" / "analysis"
    assert call("all", "--quick", "--to", to) == 0
    text = (to / "README.md").read_text()
    out = capsys.readouterr().out
    for name, page in figures().items():
        shows = page.figures[name]
        assert f"## {name}: {shows}\n" in text
        assert f"{name}: {shows}\n" in out
        assert f"]({name}.png)" in text
        for kind, least in (("png", 1000), ("svg", 1000), ("csv.gz", 200)):
            assert (to / f"{name}.{kind}").stat().st_size > least
        with gzip.open(to / f"{name}.csv.gz", "rt") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            assert math.isfinite(float(row["y"]))
            if row["low"]:
                assert float(row["low"]) <= float(row["y"]) <= float(row["high"])
        found = read(to)[name]
        assert found["claims"] or found["notes"]
        for claim in found["claims"]:
            assert claim["ours"] in out
    assert "the first 120 training and 60 test images (8x8)" in text
    assert text.count("`python -m reports all --quick`") == len(figures())


def test_the_seed_decides_the_numbers_and_not_what_came_before(tiny, monkeypatch):
    monkeypatch.setattr(picture, "draw", lambda *_: Figure())
    a, b, c = (
        to_csv(compute.compute("soap-bubble", Setting(seed=seed, quick=True)).curves)
        for seed in (0, 1, 0)
    )
    assert a == c != b


def test_a_figure_is_a_module_that_analyses_and_its_page_the_package():
    for name, page in figures().items():
        assert callable(page.modules[name].analyse)
        assert page.figures[name]
    assert "two-posteriors" not in figures()
    assert [*pages()] == ["badam", "pruning", "radial", "rdp"]


def test_without_a_name_the_figures_are_listed(drawn, capsys):
    assert call() == 0
    out = capsys.readouterr().out
    assert not drawn
    for name, page in figures().items():
        assert f"\n  {name:19}{page.figures[name]}\n" in out
        assert f"{page.name}: {page.title} ({page.folder})\n" in out


def test_what_was_analysed_before_stays_on_the_page(drawn, tmp_path):
    call("cost", "--to", tmp_path)
    call("prior-penalty", "soap-bubble", "soap-bubble", "--seed", "5", "--to", tmp_path)
    assert [name for name, _ in drawn] == ["cost", "prior-penalty", "soap-bubble"]
    assert [setting.seed for _, setting in drawn] == [0, 5, 5]
    text = (tmp_path / "README.md").read_text()
    places = [text.index(f"## {name}: ") for name in ("cost", "prior-penalty", "soap-bubble")]
    assert places == sorted(places)
    assert "## weight-marginal" not in text
    assert text.count("`python -m reports cost`;") == 1
    assert text.count("`python -m reports prior-penalty soap-bubble soap-bubble --seed 5`;") == 2


def test_the_page_puts_published_beside_ours_with_a_verdict(drawn, tmp_path, capsys):
    call("cost", "--to", tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "| that \\|w\\| is small | it is | reproduced |\n" in text
    assert "| that it is large | it is not | not reproduced: it is small |\n" in text
    assert "unsaid" not in text
    assert "- A note.\n- D: 3\n- source: Fig. 0; numbers: [cost.csv.gz](cost.csv.gz)\n" in text
    out = capsys.readouterr().out
    assert "\n  working on cost\n" in out
    assert "    not reproduced: it is small\n" in out
    assert gzip.decompress((tmp_path / "cost.csv.gz").read_bytes()).decode().splitlines() == [
        "panel,curve,x,y,low,high",
        "panel,line,1.0,0.1,0.0,0.2",
        f"panel,line,2.0,{math.pi!r},3.0,3.5",
    ]


def test_a_curve_without_a_band_leaves_its_ends_empty():
    text = to_csv([Curve("p", "c", ["a", "b"], [1.0, 2.0])])
    assert text.splitlines()[1:] == ["p,c,a,1.0,,", "p,c,b,2.0,,"]
    assert Claim("a", "b", Verdict.NOT_REPRODUCED).conclusion == "not reproduced"


def test_what_was_done_before_a_stop_is_kept(drawn, tmp_path, monkeypatch, capsys):
    real = compute.compute

    def stop_at_the_second(name, setting):
        if drawn:
            raise KeyboardInterrupt
        return real(name, setting)

    monkeypatch.setattr(compute, "compute", stop_at_the_second)
    assert call("cost", "soap-bubble", "--to", tmp_path) == 130
    assert capsys.readouterr().err.count("\n") == 1
    assert list(read(tmp_path)) == ["cost"]
    assert "## cost: " in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("command", ["bubble", "cost --seed -1", "cost --seed 1.5"])
def test_a_misuse_is_one_line_that_names_the_word(command, capsys):
    with pytest.raises(SystemExit) as leave:
        call(*command.split())
    assert leave.value.code == 2
    error = capsys.readouterr().err
    assert repr(command.split()[-1]) in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "at", "has"),
    [
        ("pruning-mlp --method ewc", "--method ewc", "badam, vadam"),
        ("pruning --method ewc", "--method ewc", "rdp"),
        ("soap-bubble --method ewc", "--method ewc", "no methods"),
        ("soap-bubble --set epochs=2", "--set epochs", "soap-bubble"),
        ("--method rdp pruning-lenet", "--method", "before"),
    ],
)
def test_an_option_that_a_figure_does_not_have_is_refused_before_the_work(command, at, has, drawn):
    with fails(at, has):
        call(*command.split())
    assert not drawn


def test_a_folder_that_cannot_be_written_fails_before_the_work(drawn, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file/analysis: "):
        call("cost", "--to", tmp_path / "file" / "analysis")
    assert not drawn


def test_a_page_that_no_figure_wrote_stays(drawn, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(UserError, match=r"README\.md: "):
        call("cost", "--to", tmp_path)
    assert not drawn
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_picture_that_cannot_be_written_is_named(drawn, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match=r"cost\.png: "):
        call("cost", "--to", tmp_path)


def test_a_data_folder_without_images_is_named(tmp_path):
    with data_fails(tmp_path / "FashionMNIST" / "raw", "train-images"):
        images.load_images(Setting(data_dir=tmp_path))
    with pytest.raises(UserError, match="none"):
        images.load_images(Setting(data_dir=tmp_path / "none"))


def test_a_data_folder_without_photographs_is_named(tmp_path):
    with pytest.raises(UserError, match="APTOS"):
        images.load_eyes(Setting(data_dir=tmp_path), 16, 4)


def test_eyes_are_standardised_and_no_patient_is_in_both_parts():
    eyes = images.load_eyes(Setting(), 16, 30)
    assert eyes.train_x.shape == (42, 3, 16, 16)
    assert eyes.test_x.shape == (12, 3, 16, 16)
    assert torch.allclose(eyes.train_x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert {*eyes.train_y.tolist()} == {0, 1}
    assert eyes.description == "drawn fundus pictures, 42 to train on (16x16)"
    assert not eyes.real
    other = images.load_eyes(Setting(seed=1), 16, 30)
    assert not torch.equal(eyes.train_x, other.train_x)


def test_photographs_of_aptos_are_taken_where_there_are_some(real_data):
    eyes = images.load_eyes(Setting(), 64, 1)
    assert eyes.real
    assert eyes.description.startswith("photographs of APTOS, 2,")
    assert eyes.train_x.shape[1:] == (3, 64, 64)


def test_fashion_images_are_averaged_and_standardised(real_data):
    found = images.load_images(Setting())
    assert found.train_x.shape == (1500, 14 * 14)
    assert found.test_x.shape == (1000, 14 * 14)
    assert (len(found.train_y), len(found.test_y), found.classes) == (1500, 1000, 10)
    assert abs(float(found.train_x.mean())) < 0.05
    assert found.description.startswith("FashionMNIST, the first 1,500 training")


def test_the_figures_of_each_page_go_to_its_own_folder(drawn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call("all")
    for page in pages().values():
        assert list(read(page.folder)) == list(page.figures)
        text = (page.folder / "README.md").read_text()
        head, *folded = text.split("<details>")
        assert head.startswith(f"# {page.title}\n\n**Question.** {page.question}\n\n")
        assert len(folded) == len(page.figures)
        assert all(text.count(f"]({name}.png)") == 1 for name in page.figures)
        if len(page.figures) > 1:
            overview = head.partition(f"{page.introduction}\n\n")[2].split("\n\n")[0]
            assert [row.split(" | ")[0] for row in overview.splitlines()[2:]] == [
                f"| {name}" for name in page.figures
            ]
        assert text.count("\n# ") == 0


def test_the_name_of_a_page_stands_for_its_figures(drawn, tmp_path):
    call("rdp", "--to", tmp_path)
    assert list(read(tmp_path)) == list(pages()["rdp"].figures)


def test_figures_of_several_pages_in_one_folder_stand_under_their_titles(drawn, tmp_path):
    call("vmf-density", "cost", "--to", tmp_path)
    lines = (tmp_path / "README.md").read_text().splitlines()
    titles = [line for line in lines if line.startswith("# ")]
    assert titles == [f"# {pages()[name].title}" for name in ("radial", "rdp")]
