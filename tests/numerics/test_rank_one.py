"""Eigenvalues and eigenvectors after a rank-one change, against NumPy's of the dense matrix, and
against exact counts of eigenvalues where the spectrum is graded."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings, strategies as st

from koco_stream.numerics import rank_one
from koco_stream.numerics.rank_one import add_outer_product, scratch_rows

ROUNDING = 1e-13
GUARD = 7.25  # behind the end of each array


def padded(rows, width, *numbers):
    """An array of so many rows with these numbers, zeros, and a row of guards."""
    a = np.zeros((rows + 1, width))
    for i, row in enumerate(numbers):
        a[i, : len(row)] = row
    a[-1] = GUARD
    return a


def changed(d, z, Q):
    """(d, z, Q) after the change."""
    n, W = len(d), rank_one.AT_ONCE * -(-len(d) // rank_one.AT_ONCE)
    vectors, rows, scratch = padded(2, W, d, z), padded(n, W, *Q), padded(scratch_rows(n), W)
    active = add_outer_product(vectors[0], vectors[1], rows, n, scratch)
    assert 0 <= active <= n
    for a in (vectors, rows, scratch):
        assert (a[-1] == GUARD).all()
    assert not vectors[:-1, n:].any()
    assert not rows[:-1, n:].any()
    return vectors[0, :n], vectors[1, :n], rows[:-1, :n]


def orthogonal(draw, n):
    return np.linalg.qr(draw.standard_normal((n, n)))[0]


def spectrum(kind, draw, n):
    """Decreasing eigenvalues (n,)."""
    d = {
        "plain": draw.random(n),
        "graded": 10.0 ** -draw.uniform(0, 12, n),
        "equal": draw.choice([1.0, 0.5, 1e-6], n),
        "nearly equal": 1.0 + rank_one.EPSILON * draw.integers(0, 40, n),
        "near": 1.0 + 1e-9 * draw.random(n),
        "some zero": draw.random(n) * (draw.random(n) < 0.5),
        "one zero": np.where(np.arange(n) < n - 1, 10.0 ** -draw.uniform(0, 12, n), 0.0),
        "zero": np.zeros(n),
    }[kind]
    return np.sort(d)[::-1]


def vector(kind, draw, d):
    """z (n,)."""
    n, z = len(d), draw.standard_normal(len(d))
    return {
        "plain": z,
        "sparse": z * (draw.random(n) < 0.4),
        "graded": z * 10.0 ** -draw.uniform(0, 12, n),
        "as the spectrum": z * np.sqrt(d),
        "tiny": z * np.sqrt(d) * 10.0 ** -draw.uniform(10, 20, n),
        "large": 1e6 * z,
        "one": z * (np.arange(n) == draw.integers(n)),
        "zero": 0 * z,
    }[kind]


SPECTRA = [
    "plain", "graded", "equal", "nearly equal", "near", "some zero", "one zero", "zero",
]  # fmt: skip
cases = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(1, 40),
    "values": st.sampled_from(SPECTRA),
    "weights": st.sampled_from(
        ["plain", "sparse", "graded", "as the spectrum", "tiny", "large", "one", "zero"]
    ),
    "scale": st.sampled_from([1.0, 1.0, 1e-60, 1e60]),
}


def case_of(seed, n, values, weights, scale):
    draw = np.random.default_rng(seed)
    d = spectrum(values, draw, n)
    return scale * d, np.sqrt(scale) * vector(weights, draw, d), draw


def positive(d, z, x):
    """How many eigenvalues of diag(d) + zzᵀ are above x, in exact arithmetic: those of d, and one
    more if the secular function is negative there.
    """
    d, z = [Fraction(v) for v in d], [Fraction(v) for v in z]
    if any(v == x and w for v, w in zip(d, z, strict=True)):
        x += max(*d, *(w * w for w in z)) / 2**200
    above = sum(v > x for v in d)
    terms = [w * w / (v - x) for v, w in zip(d, z, strict=True) if w]
    return above + (1 + sum(terms) < 0)


@settings(max_examples=100, deadline=None)
@given(**cases)
def test_change__gives_the_eigenvalues_and_vectors_of_the_dense_matrix(**case):
    d, z, draw = case_of(**case)
    Q = orthogonal(draw, len(d))
    A = (Q.T * d) @ Q + np.outer(Q.T @ z, Q.T @ z)
    new, weights, lines = changed(d, z, Q)
    size = d[0] + z @ z
    assert (np.diff(new) <= 0).all()
    assert (new >= 0).all()
    np.testing.assert_allclose(new, np.linalg.eigvalsh(A)[::-1], rtol=0, atol=ROUNDING * size)
    np.testing.assert_allclose(lines @ lines.T, np.eye(len(d)), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose((lines.T * new) @ lines, A, rtol=0, atol=ROUNDING * size)
    expected = lines @ (Q.T @ z)
    left_out = rank_one.EPSILON * np.sqrt(len(d) * d[0])
    allowed = ROUNDING * np.linalg.norm(z) + 2 * left_out
    np.testing.assert_allclose(weights, expected, rtol=0, atol=allowed)


@settings(max_examples=60, deadline=None)
@given(**{**cases, "n": st.integers(1, 20)})
@example(seed=29664, n=9, values="graded", weights="graded", scale=1.0)
def test_eigenvalues__are_correct_relative_to_themselves(**case):
    """Also those that are 1e-12 of the largest, or less: exact arithmetic counts how many lie
    above each, a little smaller and a little larger.
    """
    d, z, _ = case_of(**case)
    new, _, _ = changed(d, z, np.eye(len(d)))
    allowed = Fraction(2 * ROUNDING)
    for i, value in enumerate(new):
        value = Fraction(value)
        assert positive(d, z, value * (1 + allowed)) <= i
        assert value == 0 or positive(d, z, value * (1 - allowed)) >= i + 1


@settings(max_examples=100, deadline=None)
@given(**cases)
def test_small_entries__are_correct_relative_to_their_line_and_column(**case):
    """The matrix of the new eigenpairs has the old one's entries A_ij to rounding of √(A_ii A_jj):
    what is small is not lost beside what is large.
    """
    d, z, _ = case_of(**case)
    A = np.diag(d) + np.outer(z, z)
    new, _, lines = changed(d, z, np.eye(len(d)))
    sizes = np.sqrt(np.diag(A))
    assert (np.abs((lines.T * new) @ lines - A) <= 5 * ROUNDING * np.outer(sizes, sizes)).all()
