"""Array files that are mapped: reading one holds no more memory than what is used of it."""

import mmap
import tracemalloc
from pathlib import Path

import numpy as np

from koco_stream.io.array_file import PIECE, forget_pages, read_arrays, write_arrays

PIECES = 3


def mapped_bytes():
    """The memory of this process that is pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssFile"))


def test_reading__gives_back_the_pages_of_the_checksum_and_of_what_was_used(tmp_path):
    """Dask ends a worker that holds more than its limit, and counts pages of files."""
    large = np.arange(PIECES * PIECE // 8, dtype=np.int64)
    write_arrays(tmp_path / "large", {"format": 1}, {"large": large})
    before = mapped_bytes()
    with (tmp_path / "large").open("rb") as handle:
        content = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
    _, arrays = read_arrays(content, 1)
    assert mapped_bytes() - before < PIECE
    assert np.array_equal(arrays["large"], large)
    assert mapped_bytes() - before > (PIECES - 1) * PIECE
    forget_pages(content)
    assert mapped_bytes() - before < PIECE
    assert np.array_equal(arrays["large"], large)  # read again


def test_writing_columns__copies_one_at_a_time(tmp_path):
    """States side by side are columns of one table, which may take most of the memory."""
    table = np.arange(8 * 50_000, dtype=np.float64).reshape(50_000, 8)
    columns = {str(k): table[:, k] for k in range(8)}
    tracemalloc.start()
    write_arrays(tmp_path / "columns", {"format": 1}, columns)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * table.nbytes / 8
    write_arrays(tmp_path / "arrays", {"format": 1}, {k: a.copy() for k, a in columns.items()})
    assert (tmp_path / "columns").read_bytes() == (tmp_path / "arrays").read_bytes()
