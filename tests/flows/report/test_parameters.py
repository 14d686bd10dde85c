"""Error against each parameter that varied, with no more points than a page bears."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.report.document import report_of, write_report
from flows.report.sections.lines import READ, results_of
from flows.report.sections.parameters import (
    MOST_JOINED,
    MOST_POINTS,
    best_by_value,
    error_against_parameters,
    is_scattered,
    kept_points,
    parts_of,
)
from flows.results.views import runs_of
from tests.helpers.many_runs import put, run
from tests.helpers.swept import swept

SEARCH = """
[search]
method = "sobol"
samples = 64
[[dataset]]
name = "ill-conditioned"
n_rows = 200
[[learner]]
name = "OjaSON"
sketch_size = { integer = [3, 6] }
sketch_start = { choice = ["random", "gradients"] }
alpha = { log_uniform = [1e-2, 1e2] }
[[learner]]
name = "AdaGrad"
step_size = { log_uniform = [1e-2, 1e2] }
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parameters")
    swept(folder, SEARCH)
    return folder / "store"


def results_with(most_sizes, store, monkeypatch):
    """The results, with so many sketch sizes that may have lines of their own."""
    monkeypatch.setattr("flows.report.sections.lines.MOST_SIZES", most_sizes)
    return results_of(runs_of(store, "tiny", READ))


@pytest.mark.parametrize(
    ("most", "sizes"), [(3, ["OjaSON"]), (4, [f"OjaSON m = {size}" for size in range(3, 7)])]
)
def test_sketch_sizes__have_lines_of_their_own_if_they_are_few(most, sizes, store, monkeypatch):
    [stream] = results_with(most, store, monkeypatch).streams
    lines = {line.name: line for line in stream.lines}
    assert lines.keys() == {"AdaGrad", *sizes}
    assert sum(len(line.configurations) for line in lines.values()) == 128
    assert not is_scattered(lines["AdaGrad"], "step_size")  # nothing else of it is drawn
    assert most > 3 or is_scattered(lines["OjaSON"], "alpha")


def test_every_parameter_that_varied__has_a_plot(store, monkeypatch):
    results = results_with(3, store, monkeypatch)
    [stream] = results.streams
    figure = error_against_parameters(stream, results.styles)
    titles = [drawing.alt.partition(" on ")[0] for drawing in figure.drawings]
    against = [title.rpartition(" against ")[2] for title in titles]
    assert sorted(against) == ["alpha", "sketch_size", "sketch_start", "step_size"]
    assert "gradients</text>" in figure.drawings[against.index("sketch_start")].svg


def test_best_by_value__is_the_least_of_all_in_parts_of_drawn_values(store, monkeypatch):
    [stream] = results_with(3, store, monkeypatch).streams
    for line in stream.lines:
        least = min(one.merit for one in line.configurations if one.merit is not None)
        for name in line.tried:
            found = best_by_value(line, name)
            assert min(one.merit for one in found.values() if one) == least
            assert all(one.params[name] == value for value, one in found.items() if one)
        if line.learner == "OjaSON":
            assert len(best_by_value(line, "alpha")) == MOST_JOINED
            assert [*best_by_value(line, "sketch_start")] == ["gradients", "random"]


@given(st.lists(st.integers(), max_size=50), st.integers(1, 12))
def test_parts__have_all_items_in_order_and_equal_sizes(items, most):
    parts = parts_of(items, most)
    assert [one for part in parts for one in part] == items
    sizes = {len(part) for part in parts}
    assert len(parts) == min(most, len(items))
    assert not sizes or max(sizes) - min(sizes) <= 1


class Merit:
    """A configuration with a merit alone."""

    def __init__(self, merit):
        self.merit = merit


@given(st.lists(st.none() | st.floats(0, 1), max_size=80), st.integers(1, 20))
def test_kept_points__are_at_most_so_many_with_the_best_and_none_twice(merits, most):
    ones = [Merit(merit) for merit in merits]
    kept = kept_points(ones, most)
    known = sorted(one.merit for one in ones if one.merit is not None)
    assert len(kept) == min(most, len(known)) == len({id(one) for one in kept})
    best = [one.merit for one in kept][: math.ceil(most / 2) if len(known) <= most else most // 2]
    assert best == known[: len(best)]


def test_many_configurations__are_a_sample_that_is_said_and_a_page_of_bounded_size(tmp_path):
    draw = np.random.default_rng(0)
    rows = [
        run(1000 * k + j, f"set{k}", "AdaGrad", loss, loss / 2, params=json.dumps(params))
        for k in range(3)
        for j, (loss, *drawn) in enumerate(draw.random((1000, 3)))
        for params in [dict(zip(("step_size", "clip"), drawn, strict=True))]
    ]
    put(tmp_path, "s", [row["run_id"] for row in rows], rows)
    page = write_report(tmp_path, "s").path
    assert page.stat().st_size < 400_000
    figures = [figure for _, found in report_of(tmp_path, "s")["sections"] for figure in found]
    drawn = [figure for figure in figures if "an even sample by rank" in figure.note]
    assert len(drawn) == 3
    for svg in (drawing.svg for figure in drawn for drawing in figure.drawings):
        assert svg.count(" h 0") + svg.count("<use ") <= MOST_POINTS + 100  # ticks and keys too
