"""The page of `koco explore` in a browser: readable, complete by keyboard, and texts stay texts."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest

from flows.exploring.server import Server
from storage.store import open_store
from tests.helpers.many_runs import drawn_runs, many_runs, put_collected, put_result_file
from tests.helpers.pages import SIZES, browser, unreadable, violations, visited

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect
pytestmark = pytest.mark.system
EVIL = '<img src="x" onerror="document.title=1"><b>bold</b>'


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(many_runs(tmp_path_factory.mktemp("page") / "store", 150)) as server:
        yield server


def shows(page, words):
    """Wait until the page says that it shows so many runs: `words` is a regular expression."""
    expect(page.locator("#state")).to_have_text(re.compile(rf"^{words} of .* shown"), timeout=60e3)


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_page__is_readable(width, scheme, chromium, server):
    with visited(chromium, server.url, server.url, width, scheme) as (page, complaints):
        page.wait_for_selector("#parallel .main-svg")
        page.click("#first")
        page.wait_for_selector("#curves .main-svg")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect(page.locator("#legend li")).to_have_count(10)
        assert violations(page) == []
        assert complaints == []


def shown_on(page, text):
    """Whether a text is wholly on the first screen."""
    box = page.get_by_text(text).first.bounding_box()
    size = page.viewport_size
    return box["y"] >= 0 and box["y"] + box["height"] <= size["height"]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_first_screen__says_who_is_best_how_sure_that_is_and_what_it_costs(
    width, scheme, chromium, server
):
    with visited(chromium, server.url, server.url, width, scheme) as (page, complaints):
        page.wait_for_selector("#best-datasets tbody td")
        for text in ("Best, and its cost", "Runner-up, and is it sure?", "µs a round", "error 0."):
            assert shown_on(page, text), text
        cut = page.evaluate(
            """() => [...document.querySelectorAll('.best th, .best td, #filters option')]
                .filter((one) => one.scrollWidth > one.clientWidth + 1)
                .map((one) => one.textContent)"""
        )
        assert cut == []
        assert complaints == []


def test_runs_that_diverged__leave_an_axis_of_numbers(chromium, tmp_path):
    store, runs = open_store(tmp_path / "store"), drawn_runs(60, "s", np.random.default_rng(0))
    at = runs.schema.get_field_index("mean_loss")
    losses = [float("inf"), 1e304, *runs.column("mean_loss").to_pylist()[2:]]
    put_collected(store, runs.set_column(at, runs.schema.field(at), pa.array(losses)))
    with Server(store) as server:
        with visited(chromium, server.url, server.url) as (page, complaints):
            page.wait_for_selector("#parallel .main-svg")
            words = page.locator("#parallel .annotation-text").all_text_contents()
            [beyond] = [one for one in words if one.startswith(">")]
            assert 1 < float(beyond[1:]) < 1.2
            assert not [one for one in words if "e+30" in one or "inf" in one]
            assert complaints == []


def test_learner__has_one_colour_and_symbol_everywhere(chromium, server):
    marks = """(place) => Object.fromEntries([...document.querySelectorAll(place)].map((one) =>
        [one.textContent.split(",")[0], one.querySelector("path + path").outerHTML]))"""
    with visited(chromium, server.url, server.url) as (page, _):
        page.wait_for_selector("#parallel .main-svg")
        key = page.evaluate(marks, "#key li")
        assert len(key) == len(set(key.values())) == 3
        assert page.evaluate(marks, ".best .learner").items() <= key.items()
        page.fill("[name=where]", "learner!=AdaGrad")
        page.press("[name=where]", "Enter")
        expect(page.locator("#key li")).to_have_count(2)
        assert page.evaluate(marks, "#key li").items() <= key.items()


def test_page__is_used_by_keyboard_alone(chromium, server):
    with visited(chromium, server.url, server.url) as (page, complaints):
        page.wait_for_selector("#parallel .main-svg")
        page.focus("[name=where]")
        page.keyboard.type("step_size>=1 and status=ok")
        page.keyboard.press("Enter")
        shows(page, r"\d\d")
        page.focus("[data-key='sort mean_loss']")
        page.keyboard.press("Enter")
        page.wait_for_selector("th[aria-sort=ascending]")
        assert page.evaluate("document.activeElement.dataset.key") == "sort mean_loss"
        page.focus("#runs tbody input")
        page.keyboard.press("Space")
        page.wait_for_selector("#legend li")
        assert complaints == []


def test_filters__show_what_was_asked_for_or_why_not(chromium, server):
    with visited(chromium, server.url, server.url) as (page, _):
        shows(page, "150")
        page.fill("[name=where]", "alhpa=1")
        page.press("[name=where]", "Enter")
        page.wait_for_selector("#error:not([hidden])")
        assert "did you mean 'alpha'" in page.locator("#error").inner_text()
        page.fill("[name=where]", "mean_loss<0")
        page.press("[name=where]", "Enter")
        shows(page, "0")
        assert page.locator("#range").inner_text() == "No run meets the filters."
        expect(page.locator("#error")).to_be_hidden()
        page.click("button[type=reset]")
        shows(page, "150")


def test_drag_over_an_axis__becomes_a_condition(chromium, server):
    with visited(chromium, server.url, server.url) as (page, complaints):
        page.wait_for_selector("#parallel .main-svg")
        page.locator("#parallel").scroll_into_view_if_needed()
        box = page.locator("#parallel .draglayer .nsewdrag").first.bounding_box()
        x, y = box["x"] + box["width"] * 0.97, box["y"] + box["height"] * 0.15
        page.mouse.move(x - 20, y)
        page.mouse.down()
        page.mouse.move(x + 10, y + 100, steps=5)
        page.mouse.up()
        shows(page, r"\d\d")
        asked = page.input_value("[name=where]")
        found = re.fullmatch(r"error_rate>=([\d.]+) and error_rate<=([\d.]+)", asked)
        assert 0 < float(found[1]) < float(found[2]) < 0.5
        assert complaints == []


def test_new_runs__appear_by_themselves(chromium, tmp_path):
    store = open_store(tmp_path / "store")
    with Server(store) as server:
        with visited(chromium, server.url, server.url) as (page, complaints):
            page.wait_for_selector("#nothing:not([hidden])")
            assert "There are no runs in this store yet" in page.locator("#nothing").inner_text()
            assert violations(page) == []
            put_result_file(store, "one", drawn_runs(7, "s", np.random.default_rng(0)))
            page.wait_for_selector("#parallel .main-svg")
            shows(page, "7")
            expect(page.locator("#nothing")).to_be_hidden()
            assert complaints == []


def test_texts_of_the_store__stay_texts(chromium, tmp_path):
    store, runs = open_store(tmp_path / "store"), drawn_runs(9, EVIL, np.random.default_rng(0))
    for name in ("dataset", "error", "params", "order", "learner"):
        at = runs.schema.get_field_index(name)
        evil = json.dumps({EVIL: EVIL}) if name == "params" else EVIL  # others are refused
        values = [evil, *runs.column(name).to_pylist()[1:]]
        runs = runs.set_column(at, runs.schema.field(at), pa.array(values, pa.string()))
    put_collected(store, runs)
    with Server(store) as server:
        with visited(chromium, server.url, server.url) as (page, complaints):
            page.wait_for_selector("#parallel .main-svg")
            page.locator("summary", has_text="Axes").click()
            page.check("#axes input[value=dataset]")
            expect(page.locator("#parallel")).to_contain_text('<img src="x"')
            page.click("#first")
            page.wait_for_selector("#curves .main-svg")
            assert EVIL in page.locator("#runs").inner_text()
            assert EVIL in page.locator("#legend").inner_text()
            assert page.locator("img, b").count() == 0
            assert page.title() == "Explore · koco-stream"
            assert complaints == []


def test_many_runs__are_shown_as_a_sample_that_is_said(chromium, tmp_path):
    with Server(many_runs(tmp_path / "store", 5000)) as server:
        with visited(chromium, server.url, server.url) as (page, complaints):
            page.wait_for_selector("#parallel .main-svg")
            assert "2,000 of 5,000 runs" in page.locator("#parallel-note").inner_text()
            assert unreadable(page, 1280) == []
            assert complaints == []
