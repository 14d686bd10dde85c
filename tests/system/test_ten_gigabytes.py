"""A file far larger than memory should be: prepared and streamed on two cores, each process within
a gigabyte. `make soak` runs it.
"""

import os
import shutil
from functools import partial

import numpy as np
import pytest

from cluster.clusters import local_cluster
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream, sharding_of
from storage.dataset import dataset_problems
from storage.preparing.prepare import map_on_dask, prepare_file
from tests.helpers.memory import anonymous_peaks

GIGABYTE = 1 << 30


@pytest.mark.soak
def test_ten_gigabytes__within_one_gigabyte_a_process(tmp_path):
    size = int(float(os.environ.get("KOCO_SOAK_GIGABYTES", "10")) * 1e9)
    if shutil.disk_usage(tmp_path).free < 5 * size:
        pytest.skip(f"needs {5 * size / 1e9:.0f} GB of free disk in {tmp_path}")
    source, store, draw = tmp_path / "large.svm", tmp_path / "store", np.random.default_rng(1)
    rows = (np.sort(draw.choice(101_631, 94, replace=False)) + 1 for _ in range(4096))
    text = "".join("+1 " + " ".join(f"{j}:0.{j:06}" for j in row) + "\n" for row in rows)
    times = size // len(text)
    with source.open("w") as file:
        for _ in range(times):
            file.write(text)
    found = []
    for _ in range(2):
        with anonymous_peaks() as peaks, local_cluster(2) as client:
            how = partial(map_on_dask, client)
            found.append(prepare_file(store, "large", source, parallel_map=how))
        assert max(peaks.values()) < GIGABYTE
    manifest = found[0]
    assert found == [manifest] * 2
    assert (manifest.n_rows, manifest.n_values) == (4096 * times, 94 * 4096 * times)
    source.unlink()
    assert dataset_problems(store, "large") == []
    windows = ("shuffled-in-windows", 1, None, None, 65536, sharding_of(manifest))
    for order in ((), windows):
        with anonymous_peaks() as peaks:
            stream = Stream("large", manifest.dataset_hash, *order)
            sizes = [block.labels.size for block in StreamReader(store, stream).blocks()]
        assert sum(sizes) == manifest.n_rows
        assert max(peaks.values()) < GIGABYTE
