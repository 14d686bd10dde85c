"""The documentation's site, built as `make docs` does."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.helpers.pages import SIZES, browser, opened, violations
from tests.helpers.pages_run import PAGES
from tests.helpers.project import ROOT

BUILDER = Path(sys.executable).parent / "properdocs"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site, built as `make docs` does."""
    if not BUILDER.exists():
        pytest.skip("needs properdocs: pip install 'koco-stream[docs]'")
    folder = tmp_path_factory.mktemp("site")
    words = [BUILDER, "build", "--strict", "--site-dir", folder]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.system
def test_site__is_readable_in_a_browser(built):
    """From disk, wide and narrow, light and dark: nothing asked for elsewhere, no message, no page
    wider than the window, nothing that axe-core finds.
    """
    files = [file for file in sorted(built.glob("*.html")) if file.name != "404.html"]
    assert [f"{file.stem}.md" for file in files] == [page for page in PAGES if page != "README.md"]
    with browser() as started:
        for file, (width, scheme) in product(files, (SIZES[0], SIZES[-1])):
            with opened(started, file, width, scheme, site=True) as (page, complaints):
                assert page.evaluate("document.documentElement.scrollWidth") <= width, file
                assert violations(page) == [], (file, width, scheme)
                assert complaints == [], file


@pytest.mark.system
def test_search__finds_from_disk_while_one_types(built):
    with browser() as started, opened(started, built / "index.html", site=True) as (page, wrong):
        page.keyboard.press("s")
        page.locator("#properdocs-search-query:focus").fill("bandwid")
        page.locator("#properdocs-search-results a").first.click()
        page.wait_for_url("**/*.html#*")
        assert "bandwid" in page.inner_text("[role=main]").lower()
        assert wrong == []
