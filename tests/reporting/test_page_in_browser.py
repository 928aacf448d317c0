"""The HTML page in a real browser: no complaint, sorting, narrow and on paper."""

import json

import pytest
from browser import Browser
from pages import drawn, page_of

HOSTILE = "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "a page with spaces.html"
    path.write_text(page_of(drawn(), drawn(title="again")), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, page):
    browser.view(1280)
    browser.open(page)
    return browser


def order(browser, report: str = "b1") -> list[str]:
    rows = f"[...document.querySelectorAll('#{report} tbody tr')]"
    return browser.evaluate(f"{rows}.map(r => r.cells[0].dataset.v)")


def heading(column: int) -> str:
    return f"#b1 thead th:nth-child({column}) button"


def test_it_opens_from_disk_without_a_complaint_and_asks_for_nothing(opened, page):
    opened.evaluate("new Promise(done => setTimeout(done, 100))")
    assert opened.complaints() == []
    asked_for = [address for address in opened.asked_for() if not address.startswith("data:")]
    assert asked_for == [page.as_uri()]
    assert opened.evaluate("document.documentElement.classList.contains('scripted')")


def test_a_click_sorts_best_first_and_a_second_one_turns_it_round(opened):
    assert order(opened) == ["beta", "joint", "gamma", "alpha"]
    opened.click(heading(3))  # forgetting
    assert order(opened) == ["beta", "gamma", "alpha", "joint"]  # joint has none: last
    opened.click(heading(3))
    assert order(opened) == ["alpha", "gamma", "beta", "joint"]  # still last
    opened.click(heading(1))
    opened.click(heading(1))
    assert order(opened) == ["joint", "gamma", "beta", "alpha"]
    said = opened.evaluate("document.getElementById('said').textContent")
    assert said.startswith("sorted by method, descending")
    assert order(opened, "b2") == ["beta", "joint", "gamma", "alpha"]
    assert opened.complaints() == []


@pytest.mark.parametrize(("key", "code", "text"), [("Enter", 13, "\r"), (" ", 32, " ")])
def test_the_keyboard_sorts_too(opened, key, code, text):
    opened.evaluate(f"document.querySelector({json.dumps(heading(3))}).focus()")
    opened.press(key, code, text)
    assert order(opened) == ["beta", "gamma", "alpha", "joint"]


@pytest.mark.parametrize("width", [400, 1280])
def test_strange_names_neither_run_nor_widen_the_page(browser, tmp_path, width):
    path = tmp_path / "page.html"
    names = ("W" * 300, HOSTILE, "日本語 \u05e2\u05d1\u202e " * 20)
    path.write_text(page_of(*(drawn(name, name) for name in names), name="T" * 200))
    browser.view(width)
    browser.open(path)
    browser.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    assert browser.evaluate("document.title") == "T" * 200
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    assert browser.evaluate("document.scripts.length") == 1


def test_it_prints(opened):
    assert opened.print().startswith(b"%PDF-")
