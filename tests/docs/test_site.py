"""The site: generated pages say what the code says, and `make docs` builds all of it strictly."""

import json
import re
import subprocess
import sys
import tomllib

import pytest
from doc_pages import DOCS, ROOT, blocks, name

from docs.site import generate, markdown, notebooks, results
from vcl_radial.cli import COMMANDS, parser_for
from vcl_radial.cli.about import options_of
from vcl_radial.methods.registry import built_in_class
from vcl_radial.metrics import METRICS
from vcl_radial.posteriors.families import all_families
from vcl_radial.runs import catalogue, tracks

PAGES = generate.pages()


def cells(page):
    """The cells of every row of a page's tables."""
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    return [[c.strip() for c in row.strip("| ").split(" | ")] for row in rows]


def test_every_recipe_benchmark_and_posterior_has_a_page():
    recipes = {path.stem for path in (ROOT / "baselines").rglob("*.toml")}
    benchmarks = {path.stem for path in (ROOT / "benchmarks").glob("*.toml")}
    for folder, names in (
        ("methods", recipes),
        ("benchmarks", benchmarks),
        ("posteriors", all_families()),
    ):
        assert {f"{folder}/{n}.md" for n in names} <= PAGES.keys()


def test_a_page_of_a_method_has_its_equation_options_recipe_and_figures():
    page = generate.method_page("ewc")
    assert "R_t(w) = 1/2 sum_i P_i (w_i - w*_i)^2" in page
    rows = {row[0]: row for row in cells(page)}
    for option in options_of(built_in_class("ewc")):
        assert rows[f"`{option.key}`"][1:3] == [option.values, f"`{option.default}`"]
    (recipe,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert tomllib.loads(recipe) == catalogue.load("method", "ewc").table
    assert "[split-fashion-tuned](../reports/split-fashion-tuned/README.md)" in page


def test_the_figures_of_a_method_are_the_means_of_its_committed_runs():
    folder = ROOT / "reports" / "split-fashion" / "split-fashion-multi-head"
    lines = [line.split(",") for line in (folder / "runs.csv").read_text().splitlines()]
    number = lines[0].index("average_accuracy")
    values = [float(line[number]) for line in lines[1:] if "gaussian-vcl" in line]
    (row,) = [
        row
        for row in results.results_of("gaussian-vcl")
        if row[0].startswith("[split-fashion]") and "[split-fashion-multi-head]" in row[1]
    ]
    assert row[2] == str(len(values))
    assert float(row[3].split()[0]) == pytest.approx(sum(values) / len(values), abs=0.006)


@pytest.mark.parametrize(
    ("method", "test"),
    [
        ("ivon", "tests/methods/test_exact_posteriors.py"),
        ("radial-vcl-coreset-random", ""),
        ("vadam", "On linear regression its mean is exact"),
    ],
)
def test_a_page_of_a_method_says_how_it_was_verified(method, test):
    text = results.verification_of(method)
    assert text
    assert test in text
    assert text in generate.method_page(method)
    assert results.verification_of("ewc") == ""


def test_every_command_and_option_is_on_the_page_of_the_command_line():
    page = generate.command_line_page()
    parser = parser_for(*COMMANDS)
    choices = next(action.choices for action in parser._actions if action.choices)
    assert choices.keys() == COMMANDS.keys()
    for command, arguments in choices.items():
        _, _, text = page.partition(f"## vcl-radial {command}\n")
        text = text.partition("\n## ")[0]
        rows = " ".join(row[0] for row in cells(text))
        assert all(o in rows for a in arguments._actions for o in a.option_strings)


@pytest.mark.parametrize("track", tracks.names())
def test_every_key_has_its_type_default_and_meaning(track):
    spec = tracks.find(track).spec
    for table in (spec.DATA, "recipe"):
        model = spec.model_fields[table].annotation
        rows = {row[0].strip("`"): row for row in generate.key_rows(model, table)}
        assert rows.keys() == model.model_fields.keys()
        for key, field in model.model_fields.items():
            _, kind, default, meaning = rows[key]
            assert kind
            assert meaning, key
            known = field.get_default(call_default_factory=True)
            if field.is_required():
                assert default == "required"
            elif known is not None:
                assert json.loads(default.strip("`")) == known


def test_every_metric_is_on_the_page_and_the_example_is_computed():
    page = generate.metrics_page()
    shown = {row[0].strip("`") for row in cells(page)}
    assert METRICS.keys() <= shown
    assert "the accuracy is 89 and min-ACC 80;" in page


def test_every_public_name_is_on_the_page_of_python():
    import vcl_radial as vr

    page = generate.api_page()
    for public in {*vr.__all__} - {"__version__", "posteriors"}:
        assert f".{public}\n" in page


def test_a_docstring_keeps_its_words_and_its_equations_are_code():
    text = markdown.prose("A *b* with `c*`.\n\n    w = m * s\n      + 1\n\nThe end <b>.")
    assert text.startswith("A \\*b\\* with `c*`.")
    assert "```text\nw = m * s\n  + 1\n```" in text
    assert "\\<b>" in text
    link = "[`vcl_radial.methods.vcl.VCL`](../vcl_radial/methods/vcl.py)"
    assert markdown.prose("See `vcl_radial.methods.vcl.VCL`, not `vcl_radial.no.such`.") == (
        f"See {link}, not `vcl_radial.no.such`.\n"
    )


def test_a_bar_is_escaped_in_the_words_of_a_cell_and_not_in_its_code():
    text = markdown.table(["a"], [["`x|y` is z|0, or |X\\| "]])
    assert text.splitlines()[-1] == "| `x|y` is z\\|0, or \\|X\\| |"


def test_every_page_of_the_docs_is_in_the_navigation():
    listed = re.findall(r"- (?:[^:\n]+: )?([\w./-]+\.md)", (ROOT / "mkdocs.yml").read_text())
    assert {name(page) for page in DOCS} <= {*listed}
    generated = {path for path in PAGES if path.startswith("docs/")}
    assert generated <= {*listed}


@pytest.mark.parametrize("notebook", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_the_page_of_a_notebook_shows_the_code_of_its_cells(notebook):
    page = notebooks.page_of(notebook)
    shown = [b.code.rstrip() for b in blocks(page) if b.language == "python"]
    cells = [c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
    assert shown == [notebooks.code_of("".join(cell["source"])) for cell in cells]
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", page.read_text()):
        assert (page.parent / picture).stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.processes
def test_the_site_is_built_strictly_and_needs_no_network(tmp_path):
    pytest.importorskip("mkdocstrings", reason="the extra `docs` is not installed")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    answer = subprocess.run(
        [*command, str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    for path in PAGES:
        built = path.replace("README.md", "index.html").replace(".md", ".html")
        page = (tmp_path / "site" / built).read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|iframe)[^>]* src="https?:', page)
        assert not re.search(r'<link[^>]* rel="(?:stylesheet|preconnect)"[^>]* href="https?:', page)
