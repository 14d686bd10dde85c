"""Random numbers are those of slow generators, and have the distribution that is said."""

import numpy as np
import pytest

from koco_stream.numerics.compiler import jit
from koco_stream.numerics.random import AT_ONCE, draw_levels, level_pairs, normal
from tests.oracles import random_numbers as oracle

SEEDS = [(0, 0), (3, 2**31 - 1), (2**63 - 1, 17)]


@jit
def normals(seed, first, out):
    for i in range(out.size):
        out[i] = normal(seed, first + (i << 32))


@jit
def drawn(seed, position, pairs, words, out):
    draw_levels(seed, position, pairs, words, out)


def levels():
    """The two numbers of each pair."""
    pairs, unit = level_pairs()
    return pairs.view(np.int16).reshape(-1, 2).T / unit


@pytest.mark.parametrize(("seed", "first"), SEEDS)
def test_normals__are_the_oracles(seed, first):
    n, out = 20_000, np.zeros(20_000)
    normals(np.uint64(seed), first, out)
    expected = [oracle.normal(seed, first + 2**32 * i) for i in range(n)]
    assert out.tolist() == expected
    # What is rare has occurred: another number than the word's own, and the tail.
    words = [oracle.bits(seed, first + 2**32 * i) for i in range(n)]
    own = [oracle.EDGES[word % 256] * ((word >> 11) / 2**53) for word in words]
    assert sum(x != abs(y) for x, y in zip(own, expected, strict=True)) > 10
    assert max(abs(x) for x in expected) > 3.66


@pytest.mark.parametrize(("seed", "position"), SEEDS)
@pytest.mark.parametrize("n", [2, 8, 100, 128, 130, 2000])
def test_drawn_levels__are_the_oracles_and_do_not_depend_on_their_number(seed, position, n):
    pairs, unit = level_pairs()
    words = np.zeros(AT_ONCE * -(-n // (8 * AT_ONCE)), np.uint64)
    room = np.full(n + 2, 7, np.int16)
    drawn(np.uint64(seed), position, pairs, words, room[:n])
    expected = [oracle.level(seed, i, position) for i in range(n)]
    np.testing.assert_allclose(room[:n] / unit, expected, rtol=1e-14)
    assert room[n:].tolist() == [7, 7]


def test_levels__have_the_distribution_that_is_said():
    one, other = levels()
    assert np.unique(one).size > 10_000
    for x in (one, other):
        assert (np.sort(x) == -np.sort(x)[::-1]).all()  # so the mean is 0
        assert np.mean(x**2) == pytest.approx(1.0, abs=1e-14)
        assert np.abs(x).max() > 4.3
        for t in np.linspace(0.0, 12.0, 241):
            assert abs(np.cos(t * x).mean() - np.exp(-t * t / 2)) < 2e-5
    grid = np.linspace(0.0, 6.0, 25)
    waves = [np.exp(1j * t * other) for t in grid]
    for s in grid:
        wave = np.exp(1j * s * one)
        for t, second in zip(grid, waves, strict=True):
            expected = np.exp(-(s * s + t * t) / 2)
            assert abs((wave * second).mean() - expected) < 2e-4
            assert abs((wave * second.conj()).mean() - expected) < 2e-4


def test_levels__are_the_same_on_every_machine():
    """Recorded once: the whole numbers, which the quantile's last digits must not change."""
    pairs, unit = level_pairs()
    weights = np.arange(1, pairs.size + 1, dtype=np.uint64)
    assert int((pairs * weights).sum()) == 4_611_419_180_018_380_462
    assert unit == pytest.approx(4095.956823285345, rel=1e-15)
