"""Array files: arrays are restored to the bit, take little room if they are mostly zero, and little
memory while they are read.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koco_stream.io import array_file
from koco_stream.io.array_file import opened_arrays, write_arrays
from koco_stream.io.paths import store_path

DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "u1", "?", "<c16", "S3", "S8")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return store_path(tmp_path_factory.mktemp("arrays")) / "a.koco"


@st.composite
def any_array(draw):
    """Arrays of any type and shape, with any bytes: negative zeros and all NaNs are among them."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 20), min_size=0, max_size=3))
    n_bytes = int(np.prod(shape, dtype=int)) * dtype.itemsize
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    content = random.integers(0, 2 if dtype == np.bool_ else 256, n_bytes, np.uint8)
    array = content.view(dtype).reshape(shape)
    return array.T if draw(st.booleans()) else array


@given(st.lists(any_array(), max_size=4), st.integers(1, 300))
def test_any_arrays__are_restored_to_the_bit_from_pieces_of_any_size(file, arrays, piece):
    named = {f"{k}.a": array for k, array in enumerate([*arrays, *arrays[:1]])}
    header = {"of": "me", "clip": np.inf, "seed": np.int64(7), "rate": np.float32(0.5)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(array_file, "PIECE", piece)
        write_arrays(file, header, named)
        with opened_arrays(file) as (found, restored):
            assert found == {"of": "me", "clip": np.inf, "seed": 7, "rate": 0.5}
            assert set(restored) == set(named)
            for name, array in named.items():
                assert (restored[name].dtype, restored[name].shape) == (array.dtype, array.shape)
                assert restored[name].tobytes() == array.tobytes()
            if arrays:
                assert restored.place("0.a") == restored.place(f"{len(arrays)}.a")


def test_mostly_zero__takes_little_room_and_an_array_of_two_names_is_there_once(file):
    """A state has numbers for every feature, most of which no row has had."""
    array = np.zeros((100_000, 8))
    array[::10] = np.random.default_rng(0).standard_normal(8)
    write_arrays(file, {}, {"0.a": array, "1.a": array})
    (size,) = file.sizes()
    assert size < array.nbytes // 10


def test_pieces__are_in_memory_one_at_a_time(file, monkeypatch):
    """A worker that resumes has its states and little more."""
    monkeypatch.setattr(array_file, "PIECE", 1 << 18)
    large = np.random.default_rng(0).standard_normal((20, 1 << 16))
    write_arrays(file, {}, {str(k): array for k, array in enumerate(large)})
    before = pa.total_allocated_bytes()
    with opened_arrays(file) as (_, arrays):
        for name in arrays:
            assert np.array_equal(arrays[name], large[int(name)])
            assert pa.total_allocated_bytes() - before < large.nbytes // 4
