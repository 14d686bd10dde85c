"""Feature hashing: the places and signs that murmurhash3 gives, sums in a fixed order, canonical
rows, the same for ever.
"""

import struct
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.preparing.transform import hashed


def murmur3(number):
    """MurmurHash3_x86_32 of the four bytes of an int32, seed 0, from its description."""
    full = 0xFFFFFFFF
    k = struct.unpack("<I", struct.pack("<i", number))[0] * 0xCC9E2D51 & full
    k = (k << 15 | k >> 17) & full
    h = k * 0x1B873593 & full
    h = (h << 13 | h >> 19) & full
    h = (h * 5 + 0xE6546B64) & full ^ 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> shift) * factor & full
    return h ^ h >> 16


def oracle(rows, bits):
    """Row by row and value by value."""
    for row in rows:
        cells = {}
        for j, value in row:
            h = murmur3(j)
            cells[h % 2**bits] = cells.get(h % 2**bits, 0.0) + (-value if h >= 2**31 else value)
        yield [(place, total) for place, total in sorted(cells.items()) if total != 0.0]


def csr(rows):
    flat = [cell for row in rows for cell in row]
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    return (
        np.array([j for j, _ in flat], np.int32),
        np.array([v for _, v in flat], np.float64),
        indptr,
    )


cell = st.tuples(st.integers(0, 2**31 - 2), st.sampled_from([1.0, -1.0, 0.1, 3e-9, 1e16, 7.25]))
row = st.lists(cell, max_size=12, unique_by=lambda c: c[0]).map(sorted)


@settings(deadline=None)  # the first call imports scikit-learn
@given(rows=st.lists(row, max_size=5), bits=st.sampled_from([1, 2, 3, 18, 30]))
def test_hashed__is_the_literal_one_to_the_bit(rows, bits):
    indptr, indices, values = hashed(*csr(rows), bits)
    assert (indptr.dtype, indices.dtype, values.dtype) == (np.int64, np.int32, np.float64)
    back = [
        list(zip(indices[a:b].tolist(), values[a:b].tolist(), strict=True))
        for a, b in pairwise(indptr)
    ]
    assert back == list(oracle(rows, bits))


def test_hashed__pinned_so_that_a_dataset_prepared_today_is_the_same_next_year():
    assert [murmur3(j) for j in (0, 1, 101_630)] == [593_689_054, 4_226_891_818, 459_186_592]
    indptr, indices, values = hashed(*csr([[(0, 2.0)], [(1, 2.0)], [(101_630, 2.0)]]), 18)
    assert indices.tolist() == [593_689_054 % 2**18, 4_226_891_818 % 2**18, 459_186_592 % 2**18]
    assert values.tolist() == [2.0, -2.0, 2.0]
    assert indptr.tolist() == [0, 1, 2, 3]


def test_hashed__what_cancels_is_dropped_and_the_row_stays():
    signs = {}
    for j in range(100):  # two features at one place of two, with other signs
        signs.setdefault((murmur3(j) % 2, murmur3(j) >> 31), j)
    pair = sorted([(signs[0, 0], 5.0), (signs[0, 1], 5.0)])
    indptr, indices, values = hashed(*csr([pair, [(signs[1, 0], 1.0)]]), 1)
    assert (indptr.tolist(), indices.tolist(), values.tolist()) == ([0, 0, 1], [1], [1.0])


def test_hashed__no_rows_and_float32():
    indptr, indices, values = hashed(
        np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(1, np.int64), 4
    )
    assert (indptr.tolist(), indices.size, values.dtype) == ([0], 0, np.float64)
