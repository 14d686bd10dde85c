"""States side by side in a table have the bits of states by themselves, whatever the others do."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream.learners import LEARNERS, StreamSize
from koco_stream.learners.several import advance_states
from koco_stream.learners.shared_lines import (
    WIDTHS,
    Place,
    laid_side_by_side,
    portions,
    scan_lines,
    shares_lines,
    tables_of,
)
from koco_stream.losses import LOSSES
from koco_stream.streams.inputs import as_rows
from koco_stream.streams.rows import dense_rows
from tests.oracles import first_order
from tests.oracles.losses import slopes

BRANCHES = Counter()
ORACLES = {"OGD": first_order.ogd, "AdaGrad": first_order.adagrad}

options = st.fixed_dictionaries(
    {
        "step_size": st.sampled_from([1e-3, 0.1, 3.0, 1e9]),
        "loss": st.sampled_from(sorted(LOSSES)),
        "clip": st.sampled_from([0.3, 1.0, 1e300]),
        "projection": st.sampled_from(["weights", "prediction"]),
    }
)

# States of a table all count their rounds, or none does.
schedules = st.sampled_from([("constant",), ("sqrt", "linear")])


def configuration(learner, drawn):
    """The learner's own of the drawn parameters, and what its compiled code is told."""
    names = {parameter.name for parameter in learner.parameters}
    own = {name: value for name, value in drawn.items() if name in names}
    return own, learner.to_params(learner.complete(own))


def stream(seed, n=40, d=9, huge=False):
    """Sparse rows of either precision, some empty, some with values near the largest number."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d)) * (draw.random((n, d)) < draw.choice([0.2, 0.6]))
    if huge:
        X[draw.integers(n, size=3)] *= draw.choice([1e160, 1e305])
    elif seed % 2:
        X = X.astype(np.float32)
    if seed % 5 == 0:
        return dense_rows(X, keep_zeros=False), draw.choice([-1.0, 1.0], (17, n))
    return as_rows(scipy.sparse.csr_array(X)), draw.choice([-1.0, 1.0], (17, n))


def scheduled(drawn, schedules):
    """The drawn parameters, with these schedules in turn."""
    return [{**one, "step_schedule": schedules[i % len(schedules)]} for i, one in enumerate(drawn)]


def part(rows, first, end):
    """Some of the rows, in a row."""
    return rows._replace(indptr=rows.indptr[first : end + 1])


@pytest.mark.parametrize("name", ["OGD", "AdaGrad"])
@settings(max_examples=40, deadline=None)
@given(
    st.lists(options, min_size=1, max_size=17),
    st.integers(0, 10**6),
    st.booleans(),
    st.sets(st.integers(0, 40), max_size=3),
    schedules,
)
def test_states_side_by_side__have_the_bits_of_states_alone(
    name, drawn, seed, huge, cuts, schedules
):
    """In any blocks, each with its own labels; one that stops does so by itself, and keeps its
    bits.
    """
    learner, drawn = LEARNERS[name], scheduled(drawn, schedules)
    rows, labels = stream(seed, huge=huge)
    params = [configuration(learner, one)[1] for one in drawn]
    labels = labels[: len(params)]
    states = laid_side_by_side([learner.init(p, rows.n_features, 0) for p in params])
    running, stopped = list(range(len(params))), {}
    predictions = np.full(labels.shape, np.nan)
    bounds = [0, *sorted(cuts), 40]
    for first, end in pairwise(bounds):
        if not running:
            break
        some = np.empty((len(running), end - first))
        own = [[of[i] for i in running] for of in (params, states)]
        block = part(rows, first, end), labels[running, first:end], some
        _, done, failures = advance_states([learner] * len(running), *own, *block)
        assert failures == {}
        tables, single = tables_of(learner, own[1])
        BRANCHES[name, "side by side"] += len(tables)
        BRANCHES[name, "alone"] += len(single)
        for i, rounds, found in zip(running, done, some, strict=True):
            until = rounds + (rounds < end - first)
            predictions[i, first : first + until] = found[:until]
            if rounds < end - first:
                stopped[i] = first + rounds
        BRANCHES[name, "one stops, others go on"] += 0 < len(stopped) < len(params)
        running = [i for i in running if i not in stopped]
    for i, p in enumerate(params):
        alone, expected = learner.init(p, rows.n_features, 0), np.full(40, np.nan)
        alone, rounds = learner.advance(p, alone, rows, labels[i], expected)
        assert stopped.get(i, 40) == rounds
        np.testing.assert_array_equal(predictions[i, : rounds + 1], expected[: rounds + 1])
        assert predictions[i, :rounds].tobytes() == expected[:rounds].tobytes()
        (mine,), (theirs,) = states[i], alone
        np.testing.assert_array_equal(mine, theirs)
        finite = np.isfinite(theirs)
        assert np.signbit(mine[finite]).tolist() == np.signbit(theirs[finite]).tolist()


@pytest.mark.parametrize("name", ["OGD", "AdaGrad"])
@settings(max_examples=30, deadline=None)
@given(st.lists(options, min_size=12, max_size=12), st.integers(0, 10**6), schedules)
def test_states_side_by_side__follow_the_algorithm_as_written(name, drawn, seed, schedules):
    learner, drawn = LEARNERS[name], scheduled(drawn, schedules)
    rows, labels = stream(seed - seed % 2)
    X = scipy.sparse.csr_array(
        (rows.values, np.resize(rows.indices, rows.values.size), rows.indptr), (40, 9)
    ).toarray()
    drawn = [{**one, "clip": min(one["clip"], 2.0), "step_size": 0.1} for one in drawn]
    given_, params = zip(*(configuration(learner, one) for one in drawn), strict=True)
    states = laid_side_by_side([learner.init(p, 9, 0) for p in params])
    predictions = np.empty((12, 40))
    _, done, _ = advance_states([learner] * 12, params, states, rows, labels[:12], predictions)
    for i, own in enumerate(given_):
        assert done[i] == 40
        slope = slopes[own.pop("loss")]
        expected, weights = ORACLES[name](X.astype(float), labels[i], slope=slope, **own)
        if not np.isclose(np.abs(expected), own["clip"]).any():  # near it a slope may jump
            np.testing.assert_allclose(predictions[i], expected, rtol=0, atol=1e-8)
            (array,) = states[i]
            found = array[:9].reshape(9, -1)[:, 0]
            np.testing.assert_allclose(found, weights, rtol=0, atol=1e-8)
            BRANCHES[name, "as written"] += 1
            if len(array) > 9:
                counted = np.diff(rows.indptr)[:40] > 0
                assert array[9] == counted.sum() < 40 or counted.all()
                BRANCHES[name, "counts its rounds"] += 1


def test_every_branch__was_taken():
    taken = ("side by side", "alone", "one stops, others go on", "as written")
    every = [*((n, b) for n in ORACLES for b in taken), ("OGD", "counts its rounds")]
    missing = [one for one in every if not BRANCHES[one]]
    assert not missing


@given(st.integers(0, 60))
def test_portions__are_full_tables_and_what_is_left_over(n):
    sizes = [these.stop - these.start for these in portions(n)]
    assert [i for these in portions(n) for i in range(n)[these]] == list(range(n))
    assert set(sizes) <= {*WIDTHS, 1}
    assert sizes.count(WIDTHS[-1]) <= 1
    assert sizes.count(1) < WIDTHS[-1]


@pytest.mark.parametrize("name", ["OGD", "AdaGrad"])
@pytest.mark.parametrize("width", WIDTHS)
def test_table__has_the_memory_of_its_states_and_begins_at_a_line_of_the_cache(name, width):
    learner = LEARNERS[name]
    params = configuration(learner, {})[1]
    states = laid_side_by_side([learner.init(params, 5, 0) for _ in range(width)])
    places = [Place.of(state) for state in states]
    (array,) = states[0]
    table = places[0].table(array.size * width)
    assert (table.ctypes.data % 64, table.size) == (0, array.size * width)
    assert [place.column for place in places] == list(range(width))
    for k, state in enumerate(states):
        state[0][:] = k + 1
    lines = table.reshape(5, -1, width)
    assert (lines == np.arange(1, width + 1)).all()


def test_subclass__has_a_step_of_its_own_and_shares_no_lines():
    class Halved(LEARNERS["OGD"]):
        pass

    assert shares_lines(LEARNERS["OGD"])
    assert shares_lines(LEARNERS["AdaGrad"])
    assert not shares_lines(Halved)
    assert not shares_lines(LEARNERS["OjaSON"])
    size, given = StreamSize(1000, 50, 9.0), LEARNERS["OGD"].complete({})
    alone, shared = Halved.cost(given, size), LEARNERS["OGD"].cost(given, size)
    assert alone.shared.nanoseconds == 0.0 < shared.shared.nanoseconds
    assert alone.seconds(1000) == pytest.approx(shared.seconds(1000))


def test_no_rows__change_nothing():
    learner = LEARNERS["AdaGrad"]
    params = [configuration(learner, {})[1]] * 4
    states = laid_side_by_side([learner.init(p, 3, 0) for p in params])
    rows = as_rows(np.zeros((0, 3)))
    nothing = np.zeros((4, 0))
    assert advance_states([learner] * 4, params, states, rows, nothing, nothing)[1] == [0] * 4
    assert learner.compiled(scan_lines, "lines") is learner.compiled(scan_lines, "lines")
