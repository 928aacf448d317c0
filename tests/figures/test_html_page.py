"""The HTML page as text: what it holds, and that nothing in it comes from elsewhere."""

import base64
import csv
import io
import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from page_of import page_of, section_of

from vcl_radial.report.figures.over_seeds import all_over_seeds
from vcl_radial.report.figures.style import relative_luminance
from vcl_radial.report.page import html_page
from vcl_radial.report.page.charts import FRAME, charts
from vcl_radial.report.page.heatmaps import heatmaps

VOID = {"meta", "link", "img", "br", "input"}
HOSTILE = '<script>alert("1")</script>&\'" onmouseover="alert(2)'


class Elements(HTMLParser):
    """All elements with their attributes and texts; refuses tags that do not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert len(attributes) == len(dict(attributes)), (tag, attributes)
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_the_page_is_well_formed_and_every_id_is_there_once(many):
    page = Elements(page_of(many(5), many(2, ("naive",), seeds=1).assign(benchmark="other")))
    ids = [a["id"] for _, a in page.found if "id" in a]
    assert len(ids) == len(set(ids))
    links = [a["href"] for a in page.of("a") if a["href"].startswith("#")]
    assert links
    assert {link[1:] for link in links} <= set(ids)
    named = [a["aria-labelledby"] for _, a in page.found if "aria-labelledby" in a]
    assert set(named) <= set(ids)


def test_nothing_is_loaded_from_anywhere(many):
    text = page_of(many(5))
    page = Elements(text)
    for tag in ("link", "img", "iframe", "object", "embed", "base", "form", "use", "image"):
        assert page.of(tag) == []
    for tag, attributes in page.found:
        for name, value in attributes.items():
            if name in ("src", "srcset", "action", "data", "xlink:href"):
                pytest.fail(f"{tag} {name}={value}")
            if name == "href":
                assert value.startswith(("#", "data:text/csv;", "data:text/markdown;"))
            assert not name.startswith("on")
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttp|import\(", text)
    (policy,) = (a["content"] for a in page.of("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none';")


def test_a_hostile_name_is_nothing_but_text(make_run):
    R = [[50.0, 50.0], [99.0, 50.0], [99.0, 98.0]]
    tables = [make_run(m, s, R, benchmark=HOSTILE) for m in (HOSTILE, "b") for s in range(2)]
    section = section_of(
        pd.concat(tables),
        tasks=[HOSTILE, "b"],
        facts=[(HOSTILE, [HOSTILE])],
        notices=[HOSTILE],
    )
    hostile = Elements(
        html_page([section], title=HOSTILE, passed_over=[HOSTILE], facts=[("a", [HOSTILE])])
    )
    tame = section_of(pd.concat(tables).replace(HOSTILE, "a"), notices=["a"])
    harmless = Elements(html_page([tame], title="a", passed_over=["a"], facts=[("a", ["a"])]))
    assert len(hostile.of("script")) == len(harmless.of("script")) == 1
    attributes = {name for _, a in hostile.found for name in a}
    assert attributes <= {name for _, a in harmless.found for name in a}
    assert "".join(hostile.texts).count(HOSTILE) > 10


def cells_of(page: str, table: str) -> list[list[str]]:
    """The texts of the rows of the first table of a class."""
    body = re.search(rf'<table class="{table}.*?</table>', page, re.DOTALL).group()
    rows = re.findall(r"<tr>.*?</tr>", body, re.DOTALL)
    return [
        [
            " ".join("".join(Elements(cell).texts).replace("\u202f", " ").split())
            for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.DOTALL)
        ]
        for row in rows
    ]


def test_the_leaderboard_by_hand(two_seeds, make_run):
    naive = make_run("naive", 0, [[50.0, 50.0], [99.0, 50.0], [49.0, 98.0]])
    header, *rows = cells_of(page_of(pd.concat([two_seeds, naive])), "board")
    by_name = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert [row[0] for row in rows] == ["radial-vcl", "naive"]  # best accuracy first
    radial = by_name["radial-vcl"]
    assert radial["accuracy (%)"] == "94.75 ± 1.25"
    assert radial["forgetting"] == "6.50 ± 1.50"
    assert radial["NLL (nats)"] == "1.895 ± 0.025"
    assert radial["training (s)"] == "10.0 ± 0.0"
    assert radial["parameters"] == "1,234"
    assert radial["seeds"] == "2"
    assert by_name["naive"]["accuracy (%)"] == "73.50"
    assert by_name["naive"]["NLL (nats)"] == "1.470"


def test_the_leaderboard_marks_the_best_and_says_what_that_means(make_run):
    runs = [
        make_run(method, seed, [[50.0, 50.0], [90.0 + gain, 50.0], [80.0 + gain + seed, 91.0]])
        for method, gain in (("a", 0.0), ("b", 5.0))
        for seed in range(6)
    ]
    page = page_of(pd.concat(runs))
    header, *rows = cells_of(page, "board")
    cells = {row[0]: row[header.index("accuracy (%)")] for row in rows}
    assert cells == {"a": "86.75 ± 0.38", "b": "89.25 (best) ± 0.38"}
    assert "not shown to be worse than the best (exact sign-flip test, p ≥ 0.05, at" in page
    few = page_of(pd.concat(runs[:5] + runs[6:11]))
    assert "(best)" not in few
    assert "Nothing is marked as best: that takes at least 6 seeds in pairs." in few


def test_what_is_not_known_is_left_out_or_a_dash(many):
    results = many(3, ("naive", "joint"))
    section = section_of(results)
    unknown = section.costs.assign(parameters=float("nan"))
    page = html_page([section_of(results, costs=unknown)], title="A page")
    header, *rows = cells_of(page, "board")
    assert "parameters" not in header
    joint = next(row for row in rows if row[0] == "joint")
    assert joint[header.index("forgetting")] == "–"


def test_differences_are_against_the_first_method_and_say_what_they_are_worth(many):
    header, *rows = cells_of(page_of(many(3, ("a", "b", "c"), seeds=3)), "differences")
    assert [row[0] for row in rows] == ["b", "c"]
    assert {row[header.index("in words")] for row in rows} == {
        "too few seeds: with 3, p is at least 0.25"
    }
    single = page_of(many(3, ("a", "b"), seeds=1))
    assert "Fewer than two seeds in common with a, so no comparison: b." in single
    assert "There is no other method to compare with." in page_of(many(3, ("a",)))


def test_each_heatmap_holds_its_numbers_and_hatches_what_was_not_trained(two_seeds):
    page = page_of(two_seeds)
    assert cells_of(page, "heatmap")[1:] == [
        ["1", "98.5± 0.5", "52.0± 1.0", "98.5± 0.5"],
        ["2", "92.0± 2.0", "97.5± 0.5", "94.8± 1.2"],
    ]
    assert page.count('class="cell ahead"') == 1


def test_text_on_the_colours_of_the_heatmap_can_be_read(many):
    results = many(10, ("naive",), seeds=1)
    spread = results.assign(value=results["value"] * 2.5 - 150.0)  # from 0 to 100
    cells = [
        cell
        for _, row, average in heatmaps(all_over_seeds(spread)).maps[0].rows
        for cell in [*row, average]
        if cell.colour
    ]
    assert len(cells) > 50
    for cell in cells:
        below, ink = (
            relative_luminance(tuple(int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)))
            for c in (cell.colour, {"white": "#ffffff"}.get(cell.ink, cell.ink))
        )
        assert (max(below, ink) + 0.05) / (min(below, ink) + 0.05) >= 4.5


def test_curves_stay_inside_their_drawing_and_say_their_numbers(two_seeds, many):
    for results in (two_seeds, many(20)):
        T = results["task_evaluated"].max()
        for pair in charts(all_over_seeds(results), [str(j) for j in range(T)]):
            assert {chart.stretched for chart in pair} == {True, False}
            for chart in pair:
                points = [point for line in chart.lines for point in line.points]
                assert all(0 <= p.x <= FRAME.width and 0 <= p.y <= FRAME.height for p in points)
                numbers = [
                    float(n) for line in chart.lines for n in re.findall(r"[\d.]+", line.band)
                ]
                assert all(0 <= n <= FRAME.width for n in numbers)
    words = [p.words for p in charts(all_over_seeds(two_seeds), ["a", "b"])[0][0].lines[0].points]
    assert words == [
        "radial-vcl, after task 1: 98.50 ± 0.50 %",
        "radial-vcl, after task 2: 94.75 ± 1.25 %",
    ]
    assert charts(all_over_seeds(many(1)), ["a"]) == []


def test_every_table_can_be_saved(two_seeds):
    links = [a for a in Elements(page_of(two_seeds)).of("a") if "download" in a]
    names = {a["download"] for a in links}
    tables = ("leaderboard", "differences", "matrices", "runs")
    assert names == {f"{table}.{kind}" for table in tables for kind in ("csv", "md")}
    (board,) = (a["href"] for a in links if a["download"] == "leaderboard.csv")
    content = base64.b64decode(board.partition("base64,")[2]).decode()
    header, row = csv.reader(io.StringIO(content))
    assert float(row[header.index("average_accuracy")]) == 94.75


def test_the_details_hold_the_spec_folded_and_every_run(two_seeds):
    page = page_of(two_seeds)
    assert all("open" not in a for a in Elements(page).of("details"))
    assert "method = &#39;radial-vcl&#39;\nepochs = 3" in page
    header, *rows = cells_of(page, "runs")
    assert [row[0] for row in rows] == ["0", "1"]
    assert rows[0][header.index("accuracy (%) ↑")] == "93.50"
    assert rows[0][header.index("folder")] == "runs/radial-vcl/0"


def test_the_same_results_give_the_same_page(many):
    assert page_of(many(4)) == page_of(many(4))
