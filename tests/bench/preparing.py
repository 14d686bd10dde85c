"""Preparing a LIBSVM file beside scikit-learn's reader, on a file that it can still load: megabytes
and rows a second.
"""

import tempfile
from functools import partial
from pathlib import Path

from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from cluster.clusters import local_cluster
from storage.preparing.prepare import map_on_dask, prepare_file
from storage.sources.source import ParallelMap
from tests.bench.data import Stream
from tests.bench.measure import Time, in_turn, seconds, show
from tests.bench.sweeping import on

PEER = "scikit-learn load_svmlight_file"
ONE = "koco prepare, one core"
TWO = "koco prepare, two cores"


def preparing(stream: Stream, cores: set[int], repetitions: int) -> dict[str, Time]:
    """Measure in turn, print, return the times (µs a row). `cores` are all that this process may
    use; it is pinned to one of them.
    """
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as folder:
        source, us = Path(folder) / "text.svm", 1e6 / stream.n
        dump_svmlight_file(stream.X, stream.y, str(source), zero_based=False)
        megabytes = source.stat().st_size / 1e6

        def prepare(parallel_map: ParallelMap) -> float:
            with tempfile.TemporaryDirectory(dir=folder) as store:
                return us * seconds(
                    lambda: prepare_file(store, "text", source, parallel_map=parallel_map)
                )

        def load() -> float:
            return us * seconds(lambda: load_svmlight_file(str(source), n_features=2**31 - 1))

        times = in_turn({PEER: load, ONE: partial(prepare, map)}, repetitions)
        if len(cores) > 1:
            with on(cores), local_cluster(2) as client:
                times |= in_turn({TWO: partial(prepare, partial(map_on_dask, client))}, repetitions)
    show(
        f"Preparing LIBSVM text of {stream.name}: {megabytes:.0f} MB, {stream.n:,} rows; medians of"
        f" {repetitions}",
        ["what", "µs/row", "least to greatest", "MB/s", f"{PEER} / it"],
        [
            [name, *t.columns, 1e6 * megabytes / stream.n / t.us, times[PEER].us / t.us]
            for name, t in times.items()
        ],
        "Ours reads, checks, hashes the file and the rows, and writes Parquet shards; the peer"
        " reads into memory, without query ids.",
        "Two cores: a cluster of two workers that has started.",
    )
    return times
