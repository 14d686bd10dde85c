"""Means: of the exact sum, in twelve digits, whatever the order and the last bits of the terms."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.scores.means import deviations, differences_of, mean, means, rounded

numbers = st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(st.one_of(numbers, st.floats(0, 1), st.floats(1e8, 1e9)), min_size=1, max_size=12)


@given(rows, st.randoms(use_true_random=False))
def test_mean__does_not_depend_on_the_order_of_its_terms(values, random):
    assert mean(random.sample(values, len(values))) == mean(values)
    both = [random.sample(values, len(values)), values]
    found = deviations(both)
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
