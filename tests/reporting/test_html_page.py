"""The HTML page as text: what it holds, and that nothing in it comes from elsewhere."""

import base64
import re
from html.parser import HTMLParser

import pytest
from pages import SVG, drawn, page_of

VOID = {"meta", "link", "img", "br", "input"}
HOSTILE = '<script>alert("1")</script>&\'" onmouseover="alert(2)'


class Elements(HTMLParser):
    """All elements with their attributes and texts; refuses tags that do not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert len(attributes) == len(dict(attributes)), (tag, attributes)
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def rows_of(page: str) -> list[list[str]]:
    """The texts of the rows of the first table."""
    body = re.search(r"<table.*?</table>", page, re.DOTALL).group()
    return [
        [
            " ".join("".join(Elements(cell).texts).replace("\u202f", " ").split())
            for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    ]


def test_the_page_is_well_formed_and_every_id_is_there_once():
    page = Elements(page_of(drawn(), drawn(title="other")))
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = [a["href"] for a in page.of("a") if a["href"].startswith("#")]
    assert {link[1:] for link in links} <= set(ids)
    assert {a["aria-labelledby"] for _, a in page.elements if "aria-labelledby" in a} <= set(ids)


def test_nothing_is_loaded_from_anywhere():
    text = page_of(drawn())
    page = Elements(text)
    for tag in ("link", "iframe", "object", "embed", "base", "form", "use", "image"):
        assert page.of(tag) == []
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            if name in ("srcset", "action", "data", "xlink:href"):
                pytest.fail(f"{tag} {name}={value}")
            if name == "href":
                assert value.startswith(("#", "data:text/csv;", "data:text/markdown;"))
            if name == "src":
                assert value.startswith("data:image/svg+xml;base64,")
            assert not name.startswith("on")
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttp|import\(", text)
    (policy,) = (a["content"] for a in page.of("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_a_hostile_name_is_nothing_but_text():
    hostile = Elements(page_of(drawn(HOSTILE, HOSTILE), name=HOSTILE))
    harmless = Elements(page_of(drawn("a", "a")))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in harmless.elements]
    attributes = {name for _, a in hostile.elements for name in a}
    assert attributes <= {name for _, a in harmless.elements for name in a}
    assert "".join(hostile.texts).count(HOSTILE) > 10


def test_a_table_is_sorted_best_first_and_marks_the_best():
    header, *rows = rows_of(page_of(drawn()))
    assert header == ["method", "accuracy (%)", "forgetting", "by radial"]
    assert rows == [
        ["beta", "90.00 (best) ± 0.50", "10.00", "radial"],
        ["joint", "85.00", "–", "none"],
        ["gamma", "80.00 ± 0.50", "20.00", "radial"],
        ["alpha", "70.00 ± 0.50", "30.00", "radial"],
    ]


def test_pictures_are_inside_the_page_and_tables_can_be_saved():
    page = Elements(page_of(drawn()))
    (picture,) = page.of("img")
    assert base64.b64decode(picture["src"].partition("base64,")[2]) == SVG
    assert picture["alt"] == "radial"
    saved = {a["download"]: a["href"] for a in page.of("a") if "download" in a}
    assert set(saved) == {"summary.csv", "Leaderboard.md"}
    content = base64.b64decode(saved["summary.csv"].partition("base64,")[2])
    assert content == b"a,b\n1,2\n"


def test_details_are_folded_and_what_is_passed_over_is_named():
    text = page_of(drawn(), name="one folder")
    assert all("open" not in a for a in Elements(text).of("details"))
    assert "1 folder below this one is not on this page" in text
    assert text.count("<li>one folder</li>") == 1
    assert "radial with <code>code</code>" in text
