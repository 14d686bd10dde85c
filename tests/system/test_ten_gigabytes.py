"""A file far larger than memory should be: prepared and streamed on two cores, each process within
a gigabyte. `make soak` runs it.
"""

import os
import shutil
import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from cluster.local import local_cluster
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream, sharding_of
from storage.preparing.parallel import map_on_dask
from storage.preparing.prepare import prepare_file
from storage.verify import dataset_problems
from tests.bench.textfile import write_libsvm
from tests.helpers.memory import anonymous_peaks

GIGABYTE = 1 << 30


@contextmanager
def within_a_gigabyte(what):
    """Say how long it takes; no process may have more than a gigabyte of its own meanwhile."""
    begun = time.perf_counter()
    with anonymous_peaks() as peaks:
        yield
    largest = sorted(peaks.values(), reverse=True)
    said = ", ".join(f"{peak >> 20} MB" for peak in largest[:4])
    print(f"{what} in {time.perf_counter() - begun:.0f} s; anonymous memory at most {said}")
    assert largest[0] < GIGABYTE


@pytest.mark.soak
def test_ten_gigabytes__within_one_gigabyte_a_process(tmp_path):
    size = int(float(os.environ.get("KOCO_SOAK_GIGABYTES", "10")) * 1e9)
    if shutil.disk_usage(tmp_path).free < 5 * size:
        pytest.skip(f"needs {5 * size / 1e9:.0f} GB of free disk in {tmp_path}")
    source, store = tmp_path / "large.svm", tmp_path / "store"
    n_rows, n_values = write_libsvm(source, size, seed=1)
    print(f"\n{source.stat().st_size / 1e9:.1f} GB, {n_rows:,} rows")
    hashes = set()
    for _ in range(2):
        with within_a_gigabyte("prepared"), local_cluster(2) as client:
            on_dask = partial(map_on_dask, client)
            manifest = prepare_file(store, "large", source, parallel_map=on_dask)
        assert (manifest.n_rows, manifest.n_values) == (n_rows, n_values)
        hashes.add((manifest.dataset_hash, tuple(shard.sha256 for shard in manifest.shards)))
    assert len(hashes) == 1
    source.unlink()
    assert dataset_problems(store, "large") == []
    windows = {"order_seed": 1, "window_rows": 65536, "sharding": sharding_of(manifest)}
    for order, more in (("as-stored", {}), ("shuffled-in-windows", windows)):
        stream = Stream("large", manifest.dataset_hash, order, **more)
        with within_a_gigabyte(f"streamed {order}"):
            assert streamed(store, stream) == (n_rows, n_values)


def streamed(store, stream):
    """Read a stream through: (rows, values)."""
    rows = values = 0
    for block in StreamReader(store, stream).blocks():
        rows += block.labels.size
        values += int(np.count_nonzero(block.rows.values[: block.rows.indptr[-1]]))
    return rows, values
