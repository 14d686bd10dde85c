"""Normal numbers that are drawn many at a time are those that are drawn one by one, to the bit."""

import numpy as np
import pytest

from koco_stream.numerics.random import normals
from tests.oracles import kernel_learners as oracle


@pytest.mark.parametrize(("seed", "first"), [(0, 0), (3, 2**31 - 1), (2**63 - 1, 17)])
def test_normals__are_the_oracles(seed, first):
    n, rare = 20_000, np.zeros(20_000, np.int64)
    out = np.zeros(n)
    normals(np.uint64(seed), first, n, 1.0, out, rare)
    expected = [oracle.normal(seed, first + 2**32 * i) for i in range(n)]
    assert out.tolist() == expected
    # What is rare has occurred: another number than the word's own, and the tail.
    words = [oracle.bits(seed, first + 2**32 * i) for i in range(n)]
    own = [oracle.EDGES[word % 256] * ((word >> 11) / 2**53) for word in words]
    assert sum(x != abs(y) for x, y in zip(own, expected, strict=True)) > 10
    assert max(abs(x) for x in expected) > 3.66
    scaled = np.zeros(n)
    normals(np.uint64(seed), first, n, 0.3, scaled, rare)
    assert scaled.tolist() == (0.3 * out).tolist()
