"""Array files: one among others is read alone, changed bytes are noticed, and a mapped file holds
no more memory than what is used of it.
"""

import io
import mmap
from pathlib import Path

import numpy as np
import pytest

from koco_stream.io.array_file import Unreadable, forget_pages, read_arrays, write_arrays

LARGE = 64 << 20  # bytes


def mapped_bytes():
    """The memory of this process that is pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssFile"))


def test_pages_that_are_forgotten__are_given_back_and_read_again(tmp_path):
    """Dask ends a worker that holds more than its limit, and counts pages of files."""
    large = np.arange(LARGE // 8, dtype=np.int64)
    with (tmp_path / "large").open("wb") as handle:
        write_arrays(handle, {}, {"large": large})
    before = mapped_bytes()
    with (tmp_path / "large").open("rb") as handle:
        content = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
    _, arrays = read_arrays(content)
    assert mapped_bytes() - before > LARGE // 2
    forget_pages(content)
    assert mapped_bytes() - before < LARGE // 2
    assert np.array_equal(arrays["large"], large)


def test_file_that_others_follow__is_read_alone_and_every_changed_byte_is_noticed():
    """A run that goes on reads its own state from a checkpoint of many."""
    handle = io.BytesIO()
    write_arrays(handle, {"of": "me"}, {"a": np.arange(3), "b": np.zeros((0, 2))})
    mine = handle.getvalue()
    header, arrays = read_arrays(memoryview(mine + b"more"), more=True)
    assert header["of"] == "me"
    assert arrays["a"].tolist() == [0, 1, 2]
    assert arrays["b"].shape == (0, 2)
    for at in range(len(mine)):
        for bit in (1, 128):
            harmed = mine[:at] + bytes([mine[at] ^ bit]) + mine[at + 1 :] + b"more"
            with pytest.raises(Unreadable):
                read_arrays(harmed, more=True)
    for end in range(len(mine)):
        with pytest.raises(Unreadable):
            read_arrays(mine[:end], more=True)
