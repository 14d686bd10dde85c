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
    kept_points,
    parts_of,
)
from flows.tables.sweep_runs import runs_of
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
sketch_size = { integer = [0, 9] }
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


def test_every_parameter_that_varied__has_a_plot(store):
    results = results_of(runs_of(store, "tiny", READ))
    [stream] = results.streams
    figure = error_against_parameters(stream, results.styles)
    titles = [drawing.alt.partition(" on ")[0] for drawing in figure.drawings]
    against = [title.rpartition(" against ")[2] for title in titles]
    assert sorted(against) == ["alpha", "sketch_size", "sketch_start", "step_size"]
    assert "gradients</text>" in figure.drawings[against.index("sketch_start")].svg


def test_best_by_value__is_the_least_of_all_in_parts_of_drawn_values(store):
    [stream] = results_of(runs_of(store, "tiny", READ)).streams
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
