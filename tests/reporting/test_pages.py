"""Pages whose numbers are computed."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from failing import fails
from scipy import stats

from reports import pages
from reports.__main__ import main
from vcl_radial.errors import UserError
from vcl_radial.metrics import holm, mean_and_standard_error, sign_flip_test
from vcl_radial.reporting.rows import Rows

CSV = """method,seed,part,auc
radial,0,test,94.0
radial,1,test,95.5
radial,2,test,96.0
gaussian,2,test,95.0
gaussian,1,test,95.0
gaussian,3,test,10.0
gaussian,0,test,94.5
gaussian,0,idrid,80.0
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    (tmp_path / "runs.csv").write_text(CSV)
    path = tmp_path / "README.md.jinja"
    path.write_text(
        '{% set test = csv("runs.csv").where(part="test") %}\n'
        "{% for m in test.by_mean('auc') %}\n"
        "| {{ m }} | {{ test.where(method=m).mean('auc', 2) }} |\n"
        "{% endfor %}\n"
        "{{ test.difference('auc', 'radial', 'gaussian') }}\n"
    )
    return path


def render(path: Path) -> str:
    (text,) = pages.render([path]).values()
    return text


def test_a_page_is_made_of_the_rows_beside_it_and_again_when_they_change(template, capsys):
    folder = template.parent
    assert main(["pages", str(folder)]) == 0
    radial = "| radial | 95.17 ± 0.60 |"
    page = (folder / "README.md").read_text()
    assert page.splitlines()[0] == radial
    capsys.readouterr()
    assert main(["pages", str(folder), "--check"]) == 0
    assert main(["pages", str(folder)]) == 0
    assert capsys.readouterr().out == 2 * "pages that are up to date: 1\n"
    (folder / "runs.csv").write_text(CSV.replace("radial,0,test,94.0", "radial,0,test,95.0"))
    assert main(["pages", str(folder), "--check"]) == 1
    assert f"-{radial}" in capsys.readouterr().out
    assert (folder / "README.md").read_text() == page


def test_a_difference_is_that_of_pairs_whatever_their_order(template):
    rows = Rows.read(template.parent / "runs.csv").where(part="test")
    difference = rows.difference("auc", "radial", "gaussian")
    assert sorted(difference.values) == [-0.5, 0.5, 1.0]  # seed 3 has no pair
    assert (difference.pairs, difference.above) == (3, 2)
    mean, error = mean_and_standard_error([-0.5, 0.5, 1.0])
    assert str(difference) == f"+{mean:.2f} ± {error:.2f}"  # of three pairs there is no test
    turned = rows.difference("auc", "gaussian", "radial")
    assert turned.mean == pytest.approx(-difference.mean)
    assert sorted((-difference).values) == sorted(turned.values)


def rows_of(path: Path, **differences: list[float]) -> Rows:
    lines = [f"base,{seed},0.0" for seed in range(max(map(len, differences.values())))]
    lines += [
        f"{m},{seed},{d}" for m, values in differences.items() for seed, d in enumerate(values)
    ]
    path.write_text("\n".join(["method,seed,auc", *lines]) + "\n")
    return Rows.read(path)


def test_a_test_takes_six_pairs_and_has_the_same_p_for_both_signs(tmp_path: Path):
    values = [1.0, 2.0, -0.5, 1.5, 0.7, 1.1]
    rows = rows_of(tmp_path / "runs.csv", a=values, b=values[:5])
    difference = rows.difference("auc", "a", "base")
    assert difference.p == (-difference).p == sign_flip_test(values)
    assert str(difference).endswith(f"(p = {difference.p:.2g})")
    few = rows.difference("auc", "b", "base")
    assert math.isnan(few.p)
    assert "p" not in str(few)
    assert few.verdict == "no evidence either way"


def test_splits_that_share_rows_have_the_errors_of_nadeau_and_bengio(tmp_path: Path):
    values = [1.0, 2.0, 0.5, 1.5, 0.7, 1.1]
    rows = replace(rows_of(tmp_path / "runs.csv", a=values), overlap=0.25)
    difference = rows.where(method=["a", "base"]).difference("auc", "a", "base")
    error = np.std(values, ddof=1) * math.sqrt(1 / 6 + 0.25)
    assert difference.estimate.error == pytest.approx(error)
    p = 2 * stats.t.sf(np.mean(values) / error, 5)
    assert str(difference) == f"+{np.mean(values):.2f} ± {error:.2f} (p = {p:.2g})"
    assert difference.level(10 * np.mean(values))
    assert not difference.level(np.mean(values))


def test_the_tests_of_a_page_are_one_family_and_another_page_quotes_them(tmp_path: Path):
    sets = {"a": [1.0] * 8, "b": [-1.0] * 8, "c": [1.0, -1.0] * 4}
    (tmp_path / "one").mkdir()
    rows_of(tmp_path / "one" / "runs.csv", **sets)
    page = (
        "{% set runs = csv('FOLDERruns.csv') %}\n"
        "{% for m in ['a', 'b', 'c'] %}\n{{ runs.difference('auc', m, 'base') }}\n{% endfor %}\n"
    )
    (tmp_path / "one" / "README.md.jinja").write_text(page.replace("FOLDER", ""))
    index = tmp_path / "README.md.jinja"
    # The test of a - base is that of base - b: the page has two.
    index.write_text(
        "{% set _ = quote('one') %}\n{{ csv('one/runs.csv').difference('auc', 'base', 'a') }}\n"
    )
    p = holm([2 / 2**8, 1.0])[0]
    assert render(tmp_path / "one" / "README.md.jinja").splitlines() == [
        f"+1.00 ± 0.00 (p = {p:.2g})",
        f"-1.00 ± 0.00 (p = {p:.2g})",
        "0.00 ± 0.38 (p = 1)",
    ]
    assert render(index) == f"-1.00 ± 0.00 (p = {p:.2g})\n"
    index.write_text(index.read_text() + "{{ csv('one/runs.csv').difference('auc', 'a', 'c') }}\n")
    with fails(f"{index}:3"):
        render(index)


def test_long_tables_become_wide_ones_with_every_value(tmp_path: Path):
    path = tmp_path / "results.csv"
    path.write_text("set,split,setting,metric,value\na,0,,rmse,1\na,0,,nll,2\na,1,,rmse,3\n")
    wide = Rows.read(path).wide()
    assert wide.values("rmse") == [1.0, 3.0]
    assert wide.mean("nll") == "2.0"
    assert Rows.read(path).wide(keys=["set", "split"]).count() == 2
    path.write_text("set,metric,value\na,rmse,1\na,rmse,2\n")
    with pytest.raises(UserError, match="twice"):
        Rows.read(path).wide()


def test_rows_are_averaged_by_their_keys(tmp_path: Path):
    path = tmp_path / "runs.csv"
    path.write_text("method,seed,part,nll\na,0,x,1\na,0,y,3\na,1,x,4\na,1,y,6\n")
    averaged = Rows.read(path).averaged("method", "seed")
    assert averaged.values("nll") == [2.0, 5.0]


def test_tests_over_streams_are_told_apart_by_the_corrected_p_and_the_sign(tmp_path: Path):
    path = tmp_path / "tests.csv"
    lines = ["a,0.77,0.04", "b,-14.3,0.001", "c,5.0,0.05", "d,2.0,0.049"]
    path.write_text("\n".join(["stream,difference,holm", *lines]) + "\n")
    tests = Rows.read(path)
    assert tests.sides({"a": "A"}) == "above on A, d; below on b; undecided on c"
    with pytest.raises(UserError, match="holm"):
        Rows(tests.table.drop(columns="holm"), "tests.csv").sides({})


def test_a_page_says_what_its_runs_and_records_say_of_a_claim(tmp_path: Path):
    lines = [f"{m},{seed},{seed + (m == 'a')}" for m in "ab" for seed in range(6)]
    (tmp_path / "runs.csv").write_text("\n".join(["method,seed,auc", *lines]) + "\n")
    (tmp_path / "figure.json").write_text('{"claims": [{"verdict": "not reproduced"}]}')
    template = tmp_path / "README.md.jinja"
    template.write_text(
        "{% set d = csv('runs.csv').difference('auc', 'a', 'b') %}\n"
        "{% set known = record('figure.json').claims[0].verdict %}\n"
        "{{ d.verdict }}, {{ known }}: {{ verdict_of_parts([d.verdict, known]) }}\n"
    )
    assert render(template) == "reproduced, not reproduced: not reproduced\n"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("{{ csv('no.csv').count() }}", "no.csv"),
        ("{{ record('no.json').claims }}", "no.json"),
        ("{{ csv('runs.csv').mean('nll') }}", "nll"),
        ("{{ csv('runs.csv').where(method='ewc').count() }}", "method = ewc"),
        ("{{ csv('runs.csv').mean('method') }}", "method"),
        ("{{ csv('runs.csv').difference('auc', 'radial', 'gaussian') }}", "seed"),
        ("{{ csv('runs.csv').foo }}", "foo"),
        ("{{ unknown }}", "unknown"),
        ("{% for x in %}", "expression"),
        ("{{ csv('runs.csv').table.__class__.__base__.__subclasses__() }}", "unsafe"),
    ],
)
def test_what_the_files_do_not_hold_is_named_with_the_line(template, line, names):
    template.write_text(f"# A page\n\n{line}\n")
    with fails(f"{template}:3", names):
        pages.write([template])
    assert not (template.parent / "README.md").exists()


@pytest.mark.parametrize("name", ["", "runs.csv", "nope"])
def test_a_path_without_a_template_is_named(template, name):
    template.unlink()
    with fails(template.parent / name, "README.md.jinja"):
        pages.templates(template.parent / name)
