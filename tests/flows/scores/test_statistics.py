"""The statistics of a comparison: as printed in a published example, as literal definitions say,
and as SciPy says where it has the same test.
"""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from flows.scores import statistics as our
from tests.helpers import demsar
from tests.oracles import comparing as literal

AREAS = -np.array([areas for areas, _ in demsar.TABLE.values()])  # lower is better
scores = st.tuples(st.integers(2, 12), st.integers(2, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=st.integers(0, 5).map(float))
)
shares = st.floats(0.0, 1.0)


def test_published_example__has_the_ranks_and_figures_printed_there():
    assert our.ranks_of(AREAS).tolist() == [list(printed) for _, printed in demsar.TABLE.values()]
    found = our.friedman(AREAS)
    assert f"{found.chi_square:.2f}" == f"{demsar.CHI_SQUARE:.2f}"
    assert f"{found.f:.2f}" == f"{demsar.F:.2f}"
    assert found.p < 0.05  # "we reject the null-hypothesis"
    for alpha, printed in demsar.CRITICAL.items():
        assert f"{our.critical_difference(4, 14, alpha):.2f}" == f"{printed:.2f}"


@given(scores)
def test_friedman__is_scipys_without_its_correction_for_ties(table):
    n, k = table.shape
    found = our.friedman(table)
    ties = sum(
        int(count) ** 3 - int(count)
        for row in table
        for count in np.unique(row, return_counts=True)[1]
    )
    correction = 1 - ties / (n * (k**3 - k))
    if k > 2 and correction > 1e-9:  # SciPy's is for three learners or more
        theirs = scipy.stats.friedmanchisquare(*table.T)
        assert found.chi_square == pytest.approx(theirs.statistic * correction, abs=1e-9)
    if np.isfinite(found.f):
        degrees = k - 1, (k - 1) * (n - 1)
        assert found.p == pytest.approx(scipy.stats.f.sf(found.f, *degrees), abs=1e-12)


def test_friedman__of_learners_in_the_same_order_everywhere_and_of_equal_ones():
    chi_square, *f_and_p = our.friedman(np.tile([1.0, 2.0, 3.0], (6, 1)))
    assert (chi_square, f_and_p) == (pytest.approx(12.0), [np.inf, 0.0])
    assert our.friedman(np.ones((6, 3))) == (0.0, 0.0, 1.0)


@given(scores, st.randoms(use_true_random=False))
def test_ranks__are_the_literal_ones_and_do_not_depend_on_scale_or_names(table, random):
    ranks = our.ranks_of(table).mean(axis=0)
    assert our.ranks_of(table).tolist() == [literal.ranks(row) for row in table.tolist()]
    # another monotone map of each block, which keeps the ties
    maps = [lambda x: x**3 - 7, np.exp, lambda x: 2 * x + 1]
    mapped = np.array([random.choice(maps)(row) for row in table])
    assert our.ranks_of(mapped).mean(axis=0) == pytest.approx(ranks)
    order = random.sample(range(table.shape[1]), table.shape[1])
    assert our.ranks_of(table[:, order]).mean(axis=0) == pytest.approx(ranks[order])


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_wilcoxon__is_the_enumeration_of_all_signs(values):
    found = our.wilcoxon(np.array(values, float))
    assert found == pytest.approx(float(literal.wilcoxon(values)))
    assert found == our.wilcoxon(-np.array(values, float))


def test_wilcoxon__with_infinite_missing_or_equal_values():
    assert our.wilcoxon(np.array([np.inf, 1.0, 2.0])) == our.wilcoxon(np.array([9.0, 1.0, 2.0]))
    assert our.wilcoxon(np.array([np.nan, 1.0, 2.0])) == our.wilcoxon(np.array([1.0, 2.0]))
    assert our.wilcoxon(np.zeros(4)) == our.wilcoxon(np.array([])) == 1.0
    assert our.wilcoxon(np.arange(1.0, 9.0)) == our.least_p(8)
    # that only rounding makes unequal
    found = our.wilcoxon(np.array([0.3 - 0.2, 0.1 - 0.2, 0.5]))
    assert found == our.wilcoxon(np.array([1.0, -1.0, 5.0]))


@given(st.lists(shares, max_size=8), shares)
def test_holm__rejects_what_the_procedure_rejects(p_values, alpha):
    corrected = our.holm(p_values)
    near = [p for p in p_values for m in range(1, 9) if abs(p * m - alpha) < 1e-9]
    if not near:  # rounding decides there
        found = {which for which, p in enumerate(corrected) if p <= alpha}
        assert found == literal.rejected_by_holm(p_values, alpha) or alpha == 1.0
    assert all(p <= c <= 1.0 for p, c in zip(p_values, corrected, strict=True))


def test_bootstrap__is_the_same_each_time_and_that_of_the_normal_distribution():
    draw = np.random.default_rng(3)
    values = draw.standard_normal(400)
    repeats = [np.array([[0.0, value]]) for value in values]
    found = our.bootstrap(repeats, 0, False, 0.05)
    assert found == our.bootstrap(repeats, 0, False, 0.05)
    assert found[0] == (0.0, 0.0, 0.0)
    half = 1.96 * values.std() / np.sqrt(400)
    ends = values.mean() - half, values.mean() + half
    assert found[1][0] == pytest.approx(values.mean())
    assert found[1][1:] == pytest.approx(ends, abs=0.15 * half)


def test_bootstrap__resamples_repeats_where_there_is_one_block_and_leaves_failures_out():
    one = [np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]])]
    assert our.bootstrap(one, 0, False, 0.05)[1] == (pytest.approx(7 / 3), 1.0, 4.0)
    assert our.bootstrap([one[0][:1]], 0, False, 0.05)[1] == (1.0, None, None)
    repeats = [np.array([[0.0, 1.0, np.inf]]), np.array([[0.0, 3.0, np.inf]])]
    assert our.bootstrap(repeats, 0, False, 0.05)[1:] == [(2.0, 1.0, 3.0), (None, None, None)]
    worse = our.bootstrap([*repeats, np.array([[0.0, np.inf, 5.0]])], 0, False, 0.05)
    assert [mean for mean, *_ in worse] == [0.0, 2.0, 5.0]


@given(
    st.floats(0, 1e6, allow_subnormal=False),
    st.floats(0, 1e6, allow_subnormal=False),
    st.floats(1e-3, 1e3),
)
def test_relative_differences__do_not_depend_on_the_unit(a, b, unit):
    found = our.differences(np.array([a, b]), np.array(b), True)
    assert found[1] == 0.0
    assert -2.0 <= found[0] <= 2.0
    assert np.sign(found[0]) == np.sign(a - b) or abs(a - b) < 1e-300
    scaled = our.differences(np.array([unit * a]), np.array(unit * b), True)[0]
    assert scaled == pytest.approx(found[0], rel=1e-6, abs=1e-9)


def test_differences__to_and_of_failed_learners():
    found = our.differences(np.array([1.0, np.inf, 2.0]), np.array(1.0), True)
    assert found[:2].tolist() == [0.0, np.inf]
    both = our.differences(np.array([1.0, np.inf]), np.array(np.inf), False)
    assert both.tolist() == [-np.inf, 0]
