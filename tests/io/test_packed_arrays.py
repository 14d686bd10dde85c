"""Packed arrays: states are restored to the bit, and take no more room than their numbers."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from koco_stream.io.packed_arrays import SMALLEST, WHERE, Unpacked, packed

DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "u1", "?", "<c16", "S3", "S8")


@st.composite
def mostly_zero(draw):
    """Arrays of any type and shape, with any bytes at some places and zeros at the others."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 40), min_size=0, max_size=3))
    n_bytes = int(np.prod(shape, dtype=int)) * dtype.itemsize
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    content = random.integers(0, 2 if dtype == np.bool_ else 256, n_bytes, np.uint8)
    zeros = random.random(-(-n_bytes // 8)) < draw(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))
    content[np.repeat(zeros, 8)[:n_bytes]] = 0
    array = content.view(dtype).reshape(shape)
    return array.T if draw(st.booleans()) else array


@given(st.lists(mostly_zero(), max_size=4))
def test_any_arrays__are_restored_to_the_bit(arrays):
    named = {f"{k}.a": array for k, array in enumerate(arrays)}
    kept, about = packed(named)
    restored = Unpacked(kept, json.loads(json.dumps(about)))
    assert list(restored) != [] or not arrays
    assert set(restored) == set(named)
    assert len(restored) == len(named)
    for name, array in named.items():
        found = restored[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()
        assert found.flags.c_contiguous or found is array
    taken, whole = (sum(a.nbytes for a in one.values()) for one in (kept, named))
    assert taken <= whole  # also where hardly anything is zero


def test_negative_zeros_and_payloads_of_nans__are_no_zeros():
    array = np.zeros(SMALLEST)
    array[[7, 100]] = -0.0
    array[9] = np.array(0x7FF8_0000_0000_0BAD, np.uint64).view(np.float64)
    kept, about = packed({"a": array})
    assert kept["a"].size == 3
    assert Unpacked(kept, about)["a"].tobytes() == array.tobytes()


def test_mostly_zero__takes_its_numbers_and_a_bit_for_each_place():
    array = np.zeros((1000, 8))
    array[::10] = 1.5
    kept, _ = packed({"a": array})
    assert {name: one.nbytes for name, one in kept.items()} == {
        "a": array.nbytes // 10,
        f"a{WHERE}": 1000,
    }


def test_array_of_several_names__is_found_under_each():
    array = np.arange(5.0)
    restored = Unpacked(*packed({"0.a": array}), shared={"1.a": "0.a"})
    assert list(restored) == ["0.a", "1.a"]
    assert restored["1.a"] is array
    assert "2.a" not in restored
