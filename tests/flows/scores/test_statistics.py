"""The statistics of a comparison and its means: as printed in a published example, as literal
definitions say, and as SciPy says where it has the same test.
"""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from flows import scores as our
from flows.scores import deviations, differences_of, mean, means, rounded
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
    values = np.random.default_rng(3).standard_normal(400)
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


numbers = st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(st.one_of(numbers, st.floats(0, 1), st.floats(1e8, 1e9)), min_size=1, max_size=12)


@given(rows, st.randoms(use_true_random=False))
def test_mean__does_not_depend_on_the_order_of_its_terms(values, random):
    assert mean(random.sample(values, len(values))) == mean(values)
    found = deviations([random.sample(values, len(values)), values])
    assert found[0] == found[1]


@given(rows)
def test_mean__is_that_of_the_exact_sum_in_twelve_digits(values):
    exact = sum(map(Fraction, values)) / len(values)
    size = sum(abs(Fraction(value)) for value in values) / len(values)
    if 1e-280 < size < 1e307:
        # half a unit of the twelfth digit, or what is below the fifteenth one of the terms
        assert (
            abs(Fraction(mean(values)) - exact)
            <= Fraction("5.01e-12") * abs(exact) + Fraction("1e-14") * size
        )
        assert mean(values) == float(f"{mean(values):.11e}")


@pytest.mark.parametrize("n", [3, 7, 9, 1000, 40_960, 581_012])
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9, -1e-18])
def test_means__of_shares_with_the_same_sum_are_equal(n, scale):
    """Thirteen digits end in a 5 for some k/40,960: what is half a unit is rounded one way too."""
    by_sum = {}
    for counts in combinations_with_replacement(range(1, n, n // 9 + 1), 3):
        by_sum.setdefault(sum(counts), []).append([k / n * scale for k in counts])
    found = [set(means(some).tolist()) for some in by_sum.values()]
    assert all(len(one) == 1 for one in found)
    assert len(set.union(*found)) == len(by_sum)  # and others are not


@given(st.floats(1e-280, 1e300), st.sampled_from([1, -1]), st.floats(-2e-13, 2e-13))
def test_rounded__is_the_same_for_what_differs_in_the_last_bits_only(value, sign, change):
    once = float(rounded(sign * value))
    assert rounded(once) == rounded(once * (1 + change)) == once
    assert rounded(once * (1 + 2e-11)) != once


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([0.5, math.nan], None),
        ([math.inf, -math.inf], None),
        ([-math.inf], None),
        ([1.5e308] * 3, 1.5e308),
        ([1e308, -1e308, 3.0], 0.0),
        ([0.1, 0.2, -0.3], 0.0),
        ([-0.0], 0.0),
        ([5e-324], 5e-324),
    ],
)
def test_mean__of_no_numbers_and_of_extreme_ones(values, expected):
    assert repr(mean(values)) == repr(expected)  # no zero has a sign


def test_differences__have_no_digits_that_their_terms_lack():
    ones, others = np.array([[0.3, 0.7, 3e9, 0.5, np.inf], [0.2, 0.8, 1.0, 0.5, 1.0]])
    assert differences_of(ones, others).to_pylist() == [0.1, -0.1, 3e9 - 1, 0.0, None]
