"""What a page can be asked: learners that are chosen, values under the pointer, tables that are
filtered. All of it is of use by keyboard, except the pointer, whose values are in tables.
"""

import csv

import pytest

from flows.report.document import write_report
from tests.helpers.pages import browser, opened, unreadable, violations


@pytest.fixture(scope="module")
def page(reported):
    return write_report(reported, "tiny").path


@pytest.mark.system
def test_chart__shows_the_learner_and_the_stream_that_are_chosen_by_keyboard(page):
    with browser() as started, opened(started, page, 400) as (shown, complaints):
        shown.get_by_text("Curves", exact=True).click()
        assert unreadable(shown, 400) == []
        chart = shown.locator("details[open] .chart").first
        lines = chart.locator(".mark-line.role-mark path")
        before = lines.first.get_attribute("d")
        assert lines.count() == 2
        for label, key, expected in (("stream", "ArrowDown", 2), ("learner", "ArrowDown", 1)):
            chart.locator("label", has_text=label).locator("select").focus()
            shown.keyboard.press(key)
            assert lines.count() == expected, label
            assert lines.first.get_attribute("d") != before
        assert violations(shown) == []
        assert complaints == []


@pytest.mark.system
def test_pointer__shows_configuration_and_value_that_the_table_has_and_saves(page, tmp_path):
    with browser() as started, opened(started, page) as (shown, complaints):
        assert unreadable(shown, 1280) == []
        chart = shown.locator(".chart").first
        chart.scroll_into_view_if_needed()
        box = chart.locator(".mark-symbol.role-mark path").first.bounding_box()
        shown.mouse.move(box["x"] + 3, box["y"] + 3)
        tip = shown.locator("#vg-tooltip-element.visible")
        cells = (tip.locator(f"td.{name}").all_text_contents() for name in ("key", "value"))
        told = dict(zip(*cells, strict=True))
        shown.get_by_text("The numbers: The best of each learner").click()
        with shown.expect_download() as saved:
            shown.get_by_role("button", name="Save as CSV: Numbers: The best").click()
        saved.value.save_as(tmp_path / "best.csv")
        assert complaints == []
    _, *rows = csv.reader((tmp_path / "best.csv").read_text("utf-8").splitlines())
    assert sorted(row[1] for row in rows) == ["AdaGrad", "AdaGrad", "OGD", "OGD"]
    assert [told["stream"], told["learner"]] in [row[:2] for row in rows]
    assert "step_size=" in told["parameters"]
    assert float(told["error rate"]) > 0


@pytest.mark.system
def test_page_without_scripts__says_in_words_what_charts_show(page):
    with browser() as started:
        context = started.new_context(java_script_enabled=False)
        shown = context.new_page()
        shown.goto(page.absolute().as_uri())
        assert shown.get_by_text("the table has the best two").is_visible()
        assert shown.locator("main button, main select").count() == 0
        assert shown.locator("table[data-name=tiny-datasets] tbody tr:visible").count() == 2
        context.close()
