"""What the page's script adds: values under the pointer, lines that are hidden, tables that are
filtered. All of it is of use by keyboard, except the pointer, whose values are in the tables.
"""

import csv
import json
import re

import pytest

from flows.report.axes import Axis
from flows.report.document import write_report
from flows.report.drawing import Series, plot
from tests.helpers.pages import browser, opened, violations
from tests.helpers.swept import swept

SPEC = """
[[dataset]]
name = "ill-conditioned"
n_rows = 300
condition_number = [1.0, 10.0]
[[learner]]
name = "AdaGrad"
step_size = { powers_of_two = [-6, 0] }
[[learner]]
name = "OGD"
step_size = { powers_of_two = [-6, 0] }
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interaction")
    swept(folder, SPEC)
    return write_report(folder / "store", "tiny").path


def test_plots__have_names_on_lines_and_values_in_titles_without_scripts():
    series = [Series("a < b", [1, 10], [0.5, 0.25], [0.4, 0.2], [0.6, 0.3], ringed=[1])]
    drawn = plot(series, None, Axis("t", log=True), Axis("error", low=0.0), "alt", wide=True)
    for svg in (drawn.svg, drawn.narrow):
        kinds = re.findall(r'<g class="(\w+)" data-name="a &lt; b">', svg)
        assert set(kinds) == {"line", "part", "key"}
        assert "<title>a &lt; b: 0.25 at 10</title>" in svg


@pytest.mark.system
def test_line__is_hidden_and_shown_by_key_and_by_click_in_all_plots_of_its_figure(page):
    with browser() as started:
        for width in (1280, 400):
            with opened(started, page, width) as (shown, complaints):
                figure = shown.locator(".drawings", has=shown.locator("g.key")).last
                svg = figure.locator("svg:visible").first
                key = svg.locator("g.key[role=button]").first
                name = key.get_attribute("data-name")
                line = svg.locator(f'g.line[data-name="{name}"]').first
                key.focus()
                for press in ("Enter", "Space"):
                    shown.keyboard.press(press)
                    hidden = press == "Enter"
                    assert key.get_attribute("aria-pressed") == ("false" if hidden else "true")
                    assert ("off" in line.get_attribute("class")) == hidden
                key.locator("text").click()
                assert "off" in line.get_attribute("class")
                every = figure.locator(f'g.line[data-name="{name}"]').all()
                assert all("off" in one.get_attribute("class") for one in every)
                assert violations(shown) == []
                assert complaints == []


@pytest.mark.system
def test_table__is_filtered_by_words_and_saved_as_shown(page, tmp_path):
    with browser() as started, opened(started, page) as (shown, complaints):
        field = shown.get_by_role("searchbox", name="Filter: Best parameters")
        table = shown.locator("table[data-name=tiny-best]")
        field.focus()
        shown.keyboard.type("ogd number=10")
        assert table.locator("tbody tr:visible").count() == 1
        assert shown.get_by_role("status").first.text_content() == "1 of 6 rows"
        with shown.expect_download() as saved:
            shown.get_by_role("button", name="Save as CSV: Best parameters").click()
        saved.value.save_as(tmp_path / "best.csv")
        field.fill("")
        assert table.locator("tbody tr:visible").count() == 6
        assert complaints == []
    rows = list(csv.reader((tmp_path / "best.csv").read_text("utf-8").splitlines()))
    assert [row[1] for row in rows[1:]] == ["OGD"]


@pytest.mark.system
def test_pointer__shows_name_and_values_that_the_table_has(page):
    with browser() as started, opened(started, page) as (shown, complaints):
        svg = shown.locator("svg[data-axes]:visible").first
        svg.scroll_into_view_if_needed()
        at = svg.evaluate(
            """(svg) => {
                const group = svg.querySelector("g.line"), [x, y] = pointsOf(group).at(-1);
                const there = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
                return [there.x, there.y, group.dataset.name];
            }"""
        )
        shown.mouse.move(at[0] + 2, at[1])
        tip = shown.locator(".tip")
        assert tip.is_visible()
        name, x, y = tip.locator("b, div").all_text_contents()
        label = json.loads(svg.get_attribute("data-axes"))[0][0]
        assert (name, x.startswith(label)) == (at[2], True)
        assert float(y.split()[-1].replace(",", "")) > 0
        shown.mouse.move(2, 2)
        assert tip.is_hidden()
        assert complaints == []


@pytest.mark.system
def test_page_without_scripts__shows_all_and_promises_nothing(page):
    with browser() as started:
        context = started.new_context(java_script_enabled=False)
        shown = context.new_page()
        shown.goto(page.absolute().as_uri())
        assert shown.locator("main svg:visible").count() >= 4
        assert shown.locator("main [role=button], main input, main button").count() == 0
        assert shown.locator("table[data-name=tiny-best] tbody tr:visible").count() == 6
        context.close()
