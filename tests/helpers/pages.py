"""Pages that were written: their tables, read as a machine would, and what a real browser says of
them, opened from disk.
"""

import os
import re
import shutil
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
CELL = re.compile(r'<t[hd][^>]*?(?: data-v="(.*?)")?>(.*?)</t[hd]>', re.S)
SIZES = ((1280, "light"), (1280, "dark"), (400, "light"), (400, "dark"))


@contextmanager
def browser():
    """Headless Chromium: Playwright's own, or the machine's; the test is skipped where there is
    neither.
    """
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: make test-system"
    )
    with sync_api.sync_playwright() as playwright:
        there = [playwright.chromium.executable_path, *filter(None, map(shutil.which, PROGRAMS))]
        path = next(filter(os.path.isfile, there), None)
        started = playwright.chromium.launch(
            args=["--no-sandbox"],
            executable_path=path or pytest.skip("needs chromium: make test-packages"),
        )
        try:
            yield started
        finally:
            started.close()


@contextmanager
def opened(started, path, width=1280, scheme="light", site=False):
    """The page at `path`, and a list that gets what a page that needs nothing must not do: messages
    on its console, errors, requests. A page of a `site` may ask for the files of its folder.
    """
    address = Path(path).absolute().as_uri()
    beside = Path(path).absolute().parent.as_uri() if site else address
    context = started.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
    )
    try:
        page, complaints = context.new_page(), []
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda asked: (
                complaints.append(f"request: {asked.url}")
                if asked.url != address and not asked.url.startswith(beside)
                else None
            ),
        )
        page.goto(address)
        yield page, complaints
    finally:
        context.close()


def unreadable(page, width):
    """The charts of a page that are not drawn or not within its width, and whether the page is
    wider than the window. Charts are drawn when they are seen.
    """
    page.wait_for_function(
        """() => [...document.querySelectorAll(".chart")].every(
            (one) => !one.checkVisibility() || one.querySelector("svg"))"""
    )
    return page.evaluate(
        """(width) => {
            const wrong = [...document.querySelectorAll(".chart svg")]
                .filter((svg) => svg.checkVisibility())
                .map((svg) => svg.getBoundingClientRect())
                .filter((b) => b.width < 250 || b.height < 120 || b.x < 0 || b.right > width)
                .map((b) => `${b.width} x ${b.height} at ${b.x}`);
            const across = document.documentElement.scrollWidth;
            return across > width ? [...wrong, `the page is ${across} wide`] : wrong;
        }""",
        width,
    )


def violations(page):
    """What axe-core finds."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="needs axe-playwright-python: make test-system",
    ).Axe()
    # Preloading, which reads style sheets again, is not allowed from disk. A list of what passes
    # would take as long again.
    found = axe.run(page, options={"preload": False, "resultTypes": ["violations"]})
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found.response["violations"]]


def look_at(pages, checked=(SIZES[0], SIZES[-1])):
    """Open pages from disk, wide and narrow, light and dark: every chart must be seen and nothing
    asked for; and, in the sizes and schemes that are `checked`, which takes seconds, axe-core must
    find nothing, with the numbers behind the charts shown too.
    """
    with browser() as started:
        for path in pages:
            for width, scheme in SIZES:
                with opened(started, path, width, scheme) as (page, complaints):
                    assert unreadable(page, width) == [], (path, width)
                    page.evaluate(
                        "document.querySelectorAll('details').forEach(one => { one.open = true })"
                    )
                    assert unreadable(page, width) == [], (path, width)
                    if (width, scheme) in checked:
                        assert violations(page) == [], (path, width, scheme)
                    assert complaints == [], path


def tables_of(path):
    """The tables of a page by name: rows as dictionaries, with each cell's whole value as text."""
    found, text = {}, path.read_text(encoding="utf-8").replace(' data-v="">–', ">")
    for name, content in re.findall(r'<table data-name="(.*?)">(.*?)</table>', text, re.S):
        head, *rows = (
            [unescape(whole or re.sub("<.*?>", "", shown)) for whole, shown in CELL.findall(row)]
            for row in content.split("<tr>")[1:]
        )
        found[unescape(name)] = [dict(zip(head, row, strict=True)) for row in rows]
    return found
