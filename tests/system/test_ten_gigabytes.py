"""A file far larger than memory should be: prepared and streamed on two cores, each process within
a gigabyte. `make soak` runs it.
"""

import os
import shutil
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cluster.local import local_cluster
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream, sharding_of
from storage.preparing.parallel import map_on_dask
from storage.preparing.prepare import prepare_file
from storage.verify import dataset_problems
from tests.helpers.memory import anonymous_peaks

GIGABYTE = 1 << 30


@pytest.mark.soak
def test_ten_gigabytes__within_one_gigabyte_a_process(tmp_path):
    size = int(float(os.environ.get("KOCO_SOAK_GIGABYTES", "10")) * 1e9)
    if shutil.disk_usage(tmp_path).free < 5 * size:
        pytest.skip(f"needs {5 * size / 1e9:.0f} GB of free disk in {tmp_path}")
    source = tmp_path / "large.svm"
    begun = time.perf_counter()
    draw = np.random.default_rng(1)
    rows = (np.sort(draw.choice(101_631, 94, replace=False)) + 1 for _ in range(4096))
    text = "".join("+1 " + " ".join(f"{j}:0.{j:06}" for j in row) + "\n" for row in rows)
    with source.open("w") as file:
        for _ in range(size // len(text)):
            file.write(text)
    n_rows, n_values = 4096 * (size // len(text)), 94 * 4096 * (size // len(text))
    print(
        f"\nmade {source.stat().st_size / 1e9:.1f} GB, {n_rows:,} rows, in"
        f" {time.perf_counter() - begun:.0f} s"
    )
    hashes = set()
    for _ in range(2):
        begun = time.perf_counter()
        with anonymous_peaks() as peaks, local_cluster(2) as client:
            manifest = prepare_file(
                tmp_path / "store", "large", source, parallel_map=partial(map_on_dask, client)
            )
        took = time.perf_counter() - begun
        print(
            f"prepared in {took:.0f} s: {size / 1e6 / took:.0f} MB/s, {n_rows / took:,.0f} rows/s;"
            f" {said(peaks)}"
        )
        assert max(peaks.values()) < GIGABYTE
        assert (manifest.n_rows, manifest.n_values) == (n_rows, n_values)
        hashes.add((manifest.dataset_hash, tuple(shard.sha256 for shard in manifest.shards)))
    assert len(hashes) == 1
    source.unlink()
    assert dataset_problems(tmp_path / "store", "large") == []
    windows = {
        "order": "shuffled-in-windows",
        "order_seed": 1,
        "window_rows": 65536,
        "sharding": sharding_of(manifest),
    }
    for order in ({"order": "as-stored"}, windows):
        begun = time.perf_counter()
        with anonymous_peaks() as peaks:
            rows, values = streamed(
                tmp_path / "store", Stream("large", manifest.dataset_hash, **order)
            )
        print(f"streamed {order['order']} in {time.perf_counter() - begun:.0f} s; {said(peaks)}")
        assert (rows, values) == (n_rows, n_values)
        assert max(peaks.values()) < GIGABYTE


def streamed(store: Path, stream: Stream) -> tuple[int, int]:
    """Read a stream through: (rows, values)."""
    rows = values = 0
    for block in StreamReader(store, stream).blocks():
        rows += block.labels.size
        values += int(np.count_nonzero(block.rows.values[: block.rows.indptr[-1]]))
    return rows, values


def said(peaks: dict[int, int]) -> str:
    return "anonymous memory at most " + ", ".join(
        f"{peak >> 20} MB" for peak in sorted(peaks.values(), reverse=True)[:4]
    )
