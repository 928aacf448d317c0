"""A reader who follows a link arrives, and the first page is short."""

import re

import pytest
from doc_pages import DOCS, PAGES, ROOT, anchors, links, name, prose

README, INDEX = ROOT / "README.md", ROOT / "docs" / "README.md"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_leads_to_a_file_and_a_heading_that_are_there(page):
    lost = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append(target)
    assert not lost


def test_the_readme_has_at_most_6000_bytes_one_picture_and_no_p_value():
    text = README.read_text(encoding="utf-8")
    assert len(text.encode()) <= 6000
    assert text.count("![") == 1
    assert not re.search(r"\bp [=<] ", text)


def test_the_readme_takes_two_minutes():
    # At 230 words a minute; tables are looked at, not read.
    lines = [line for line in prose(README).splitlines() if not line.startswith("|")]
    assert len(" ".join(lines).split()) <= 460


def test_the_index_has_one_line_for_each_page_of_the_docs():
    targets = [target for target in links(INDEX) if "/" not in target]
    pages = {page.name for page in DOCS} - {"README.md"}
    assert sorted(targets) == sorted(pages)


@pytest.mark.parametrize("page", DOCS, ids=name)
def test_the_first_line_of_a_page_is_its_only_title(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert "<" not in prose(page), "no HTML"
