"""Every block of code in the pages of docs/ runs, in order, and prints what stands below it."""

import re
from pathlib import Path

import pytest

from pages import FENCE, needed, played

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
GENERATED = ("gallery", "reference", "studies", "project")
"""Folders into which `make docs` writes pages; the gallery's programs are run by it, docstrings as doctests."""

ELSEWHERE = {
    "families.md": "test_docs.py",
    "directions.md": "test_docs.py",
    "models.md": "test_docs.py",
    "hmm.md": "test_sticky_hdp_hmm.py",
    "federate.md": "test_train.py",
    "bertopic.md": "test_bertopic.py",
}
"""Pages whose blocks show no output -> the test that runs them and looks at what they leave behind."""

PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name not in GENERATED and page.name not in ELSEWHERE)
VERSION = re.compile(r"\b\d+\.\d+\.\d+\b")
"""Of a library, which a report of export names."""

BLOCKS = {
    page: [code for word, code in FENCE.findall(page.read_text(encoding="utf-8")) if word in ("python", "console")]
    for page in PAGES
}
EXTRAS = {extra for blocks in BLOCKS.values() for block in blocks if (extra := needed(block))}


def with_blocks(extra=None):
    """Pages with blocks to run that need an extra, or none."""
    return [page for page, blocks in BLOCKS.items() if any(needed(block) == extra for block in blocks)]


def check(page, *extras):
    written = page.read_text(encoding="utf-8")
    assert VERSION.sub("x", played(page, extras)) == VERSION.sub("x", written)


def test_pages_that_are_run_elsewhere_are():
    for page, test in ELSEWHERE.items():
        assert (DOCS / page).exists()
        assert f'"{page}"' in (TESTS / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", with_blocks(), ids=lambda page: page.stem)
def test_blocks_print_what_the_page_shows(page):
    check(page)


@pytest.mark.parametrize(
    ("page", "extra"),
    [
        pytest.param(page, extra, marks=getattr(pytest.mark, extra), id=f"{page.stem}-{extra}")
        for extra in sorted(EXTRAS)
        for page in with_blocks(extra)
    ],
)
def test_blocks_that_need_an_extra_run(page, extra):
    check(page, extra)


def test_a_page_that_shows_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError):
        check(page)
    page.write_text("```python\nprint(1 + 1)\n```\n")
    with pytest.raises(AssertionError, match="prints what the page does not show"):
        check(page)
