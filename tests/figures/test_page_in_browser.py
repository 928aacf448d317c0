"""The HTML page in a real browser: no complaint, sorting, themes, narrow and on paper."""

import json

import pandas as pd
import pytest
from browser import Browser
from page_of import page_of, section_of

from vcl_radial.report.page import html_page

HOSTILE = "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def results():
    """Four methods that every score puts into another order, in six seeds."""
    made = {"alpha": (0, 30), "beta": (8, 10), "gamma": (4, 20), "joint": (6, 0)}
    rows = []
    for method, (lead, loss) in made.items():
        for seed in range(6):
            for i in (0, 2) if method == "joint" else (0, 1, 2):
                for j in (1, 2):
                    accuracy = 60.0 + lead + seed + (loss if i == j == 1 else 0)
                    for metric, scale in (("accuracy", 1.0), ("nll", 0.02), ("ece", 0.2)):
                        rows.append(("bench", method, seed, i, j, metric, scale * accuracy))
    columns = ["benchmark", "method", "seed", "task_trained", "task_evaluated", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "a page with spaces.html"
    path.write_text(page_of(results, results.assign(benchmark="again")), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, page):
    browser.view(1280)
    browser.open(page)
    browser.evaluate("localStorage.clear()")
    return browser


def order(browser) -> list[str]:
    return browser.evaluate(
        "[...document.querySelectorAll('#b1 .board tbody tr')].map(r => r.cells[0].dataset.v)"
    )


def heading(browser, words: str) -> str:
    """The selector of a heading's button, and that it is a button."""
    index = browser.evaluate(
        "[...document.querySelectorAll('#b1 .board thead th')]"
        f".findIndex(th => th.textContent.startsWith({json.dumps(words)})) + 1"
    )
    assert index > 0
    return f"#b1 .board thead th:nth-child({index}) button"


def sorted_by(browser) -> dict[str, str]:
    return browser.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#b1 .board th[aria-sort]')]"
        ".filter(th => th.ariaSort !== 'none').map(th => [th.textContent.trim(), th.ariaSort]))"
    )


def test_it_opens_from_disk_without_a_complaint_and_asks_for_nothing(opened, page):
    opened.evaluate("new Promise(done => setTimeout(done, 100))")
    assert opened.complaints() == []
    assert opened.asked_for() == [page.as_uri()]
    assert opened.evaluate("document.documentElement.classList.contains('scripted')")


def test_a_click_sorts_best_first_and_a_second_one_turns_it_round(opened):
    assert order(opened) == ["beta", "joint", "gamma", "alpha"]
    assert sorted_by(opened) == {"accuracy (%)": "descending"}
    opened.click(heading(opened, "forgetting"))
    assert order(opened) == ["beta", "gamma", "alpha", "joint"]  # joint has none: last
    assert sorted_by(opened) == {"forgetting": "ascending"}
    opened.click(heading(opened, "forgetting"))
    assert order(opened) == ["alpha", "gamma", "beta", "joint"]  # still last
    assert sorted_by(opened) == {"forgetting": "descending"}
    opened.click(heading(opened, "training"))
    assert order(opened) == ["alpha", "beta", "gamma", "joint"]
    opened.click(heading(opened, "method"))
    opened.click(heading(opened, "method"))
    assert order(opened) == ["joint", "gamma", "beta", "alpha"]
    assert opened.evaluate("document.getElementById('said').textContent").startswith(
        "sorted by method, descending"
    )
    other = "[...document.querySelectorAll('#b2 .board tbody tr')].map(r => r.cells[0].dataset.v)"
    assert opened.evaluate(other) == ["beta", "joint", "gamma", "alpha"]
    assert opened.complaints() == []


@pytest.mark.parametrize(("key", "code", "text"), [("Enter", 13, "\r"), (" ", 32, " ")])
def test_the_keyboard_sorts_too(opened, key, code, text):
    selector = heading(opened, "NLL")
    opened.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
    opened.press(key, code, text)
    assert sorted_by(opened) == {"NLL (nats)": "ascending"}
    assert order(opened) == ["alpha", "gamma", "joint", "beta"]


def test_every_heading_sorts_by_what_it_shows(opened):
    columns = opened.evaluate("document.querySelectorAll('#b1 .board th[aria-sort]').length")
    assert columns >= 9
    for n in range(columns):
        selector = f"#b1 .board th[aria-sort]:nth-of-type({n + 1 + (n > 0)}) button"
        opened.click(selector)
        shown = opened.evaluate(
            f"(() => {{ const th = document.querySelector({json.dumps(selector)}).closest('th');"
            "const rows = [...document.querySelectorAll('#b1 .board tbody tr')];"
            "return [th.ariaSort, rows.map(r => r.cells[th.cellIndex].dataset.v)]; })()"
        )
        sign = 1 if shown[0] == "ascending" else -1
        values = [value for value in shown[1] if value != ""]
        assert shown[1][: len(values)] == values
        if n > 0:
            numbers = [sign * float(value) for value in values]
            assert numbers == sorted(numbers)
        else:
            assert values == sorted(values)


def luminance(browser, expression: str) -> float:
    """Of a CSS colour, from 0 (black) to 1 (white)."""
    return browser.evaluate(
        "(() => { const [r, g, b] = " + expression + ".match(/[\\d.]+/g).slice(0, 3)"
        ".map(v => v / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);"
        "return 0.2126 * r + 0.7152 * g + 0.0722 * b; })()"
    )


def paper(browser) -> float:
    return luminance(browser, "getComputedStyle(document.body).backgroundColor")


def test_light_and_dark_follow_the_system_until_the_reader_chooses(browser, page):
    browser.view(1280, "dark")
    browser.open(page)
    browser.evaluate("localStorage.clear()")
    browser.open(page)
    assert paper(browser) < 0.05
    browser.click("#theme")
    assert paper(browser) > 0.8  # light, though the system is dark
    browser.open(page)
    assert paper(browser) > 0.8  # kept
    browser.click("#theme")
    browser.view(1280, "light")
    assert paper(browser) < 0.05  # dark, though the system is light
    browser.click("#theme")
    assert paper(browser) > 0.8  # as the system again
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_on_its_paper(browser, page, scheme):
    browser.view(1280, scheme)
    browser.open(page)
    style = "getComputedStyle(document.querySelector({!r})).{}"
    card = luminance(browser, style.format(".card", "backgroundColor"))
    for selector in ("h2", "a", ".quiet", "small", "thead th button", ".facts dt", "td.number"):
        ink = luminance(browser, style.format(f".benchmark {selector}", "color"))
        contrast = (max(ink, card) + 0.05) / (min(ink, card) + 0.05)
        assert contrast >= 4.5, selector
    best = [
        luminance(browser, style.format("td .best", kind)) for kind in ("color", "backgroundColor")
    ]
    assert (max(best) + 0.05) / (min(best) + 0.05) >= 4.5


def test_a_method_can_be_hidden_and_pointed_at_in_the_curves(opened):
    button = "#b1 .legend li:nth-child(2) button"
    visible = (
        "[...document.querySelectorAll('#b1 .chart:not(.other) .curve[data-m=\"1\"]')]"
        ".map(c => getComputedStyle(c).display)"
    )
    faint = (
        "document.querySelectorAll('#b1 .focused .chart:not(.other) .curve:not(.chosen)').length"
    )
    assert opened.evaluate(visible) == ["inline", "inline"]
    opened.click(button)
    assert opened.evaluate(visible) == ["none", "none"]
    opened.click(button)
    assert opened.evaluate(visible) == ["inline", "inline"]
    assert opened.evaluate(faint) == 2 * 3
    shown = "[...document.querySelectorAll('#b1 .chart')].map(c => getComputedStyle(c).display)"
    before = opened.evaluate(shown)
    opened.click("#b1 .stretch")
    assert opened.evaluate(shown) == [{"none": "block", "block": "none"}[x] for x in before]


def test_a_link_from_the_board_opens_the_method(opened):
    is_open = "document.getElementById('b1-d1').open"
    assert opened.evaluate(is_open) is False
    opened.click('#b1 .board a[href="#b1-d1"]')
    opened.evaluate("new Promise(done => setTimeout(done, 50))")
    assert opened.evaluate(is_open) is True


@pytest.mark.parametrize("width", [400, 768, 1280])
def test_strange_names_neither_run_nor_widen_the_page(browser, tmp_path, results, width):
    names = {"alpha": HOSTILE, "beta": "W" * 300, "gamma": "日本語 \u05e2\u05d1\u202e " * 20}
    renamed = results.replace({"method": names}).replace({"benchmark": {"bench": "N" * 200}})
    section = section_of(
        renamed,
        tasks=["t" * 80, HOSTILE],
        facts=[("command", [HOSTILE + "c" * 500])],
        notices=["n" * 300],
    )
    path = tmp_path / "page.html"
    path.write_text(html_page([section], title="T" * 200, passed_over=["p" * 400, HOSTILE]))
    browser.view(width)
    browser.open(path)
    browser.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    assert browser.evaluate("document.title") == "T" * 200
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.images.length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_column_of_the_leaderboard_is_cut_off_at_1280_pixels(browser, tmp_path, results, scheme):
    newest = results[results["metric"] == "accuracy"].assign(metric="predicted_as_newest")
    newest = newest[newest["method"] != "joint"]
    named = pd.concat([results, newest]).replace({"alpha": "radial-vcl-coreset-kcentre (epochs=4)"})
    path = tmp_path / "page.html"
    path.write_text(page_of(named))
    browser.view(1280, scheme)
    browser.open(path)
    columns = "[...document.querySelectorAll('.board thead th')].map(th => th.innerText.trim())"
    headings = " ".join(browser.evaluate(columns))
    for words in ("recency", "BWT", "ECE", "training", "parameters", "seeds"):
        assert words in headings
    cut = "(() => { const e = document.querySelector('.board').closest('.scroll');"
    assert browser.evaluate(cut + "return e.scrollWidth - e.clientWidth; })()") == 0


def test_on_paper_it_is_light_whole_and_without_buttons(opened):
    opened.view(1280, "dark")
    opened.call("Emulation.setEmulatedMedia", media="print")
    assert luminance(opened, "getComputedStyle(document.querySelector('h2')).color") < 0.1
    cut = (
        "[...document.querySelectorAll('.scroll')]"
        ".filter(e => getComputedStyle(e).overflowX !== 'visible').length"
    )
    assert opened.evaluate(cut) == 0
    shown = "[...document.querySelectorAll('.noprint')].filter(e => e.checkVisibility()).length"
    assert opened.evaluate(shown) == 0
    opened.call("Emulation.setEmulatedMedia", media="")
    assert opened.print().startswith(b"%PDF-")


def test_without_its_script_the_page_still_shows_everything(browser, page):
    browser.view(1280)
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        text = browser.evaluate("document.body.innerText")
        visible = "[...document.querySelectorAll('.needs-script')].filter(e => e.checkVisibility())"
        assert browser.evaluate(f"{visible}.length") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    for words in ("alpha", "beta", "higher", "0123456789ab"):
        assert words in text
