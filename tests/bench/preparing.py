"""Preparing a LIBSVM file beside scikit-learn's reader, on a file that it can still load: megabytes
and rows a second.
"""

import os
import tempfile
from functools import partial
from pathlib import Path

from cluster.local import local_cluster
from storage.preparing.parallel import map_on_dask
from storage.preparing.prepare import prepare_file
from storage.sources.source import ParallelMap
from tests.bench.measure import Time, in_turn, seconds, show
from tests.bench.textfile import write_libsvm

PEER = "scikit-learn load_svmlight_file"
ONE = "koco prepare, one core"
TWO = "koco prepare, two cores"


def preparing(cores: set[int], repetitions: int, quick: bool) -> dict[str, Time]:
    """Measure in turn, print, return the times (µs a row). `cores` are all that this process may
    use; it is pinned to one of them.
    """
    from sklearn.datasets import load_svmlight_file

    with tempfile.TemporaryDirectory(prefix="koco-bench-") as folder:
        source = Path(folder) / "text.svm"
        n_bytes = (20 if quick else 120) << 20
        n_rows, n_values = write_libsvm(source, n_bytes, seed=1)
        n_bytes = source.stat().st_size
        number = 0

        def prepare(parallel_map: ParallelMap) -> float:
            nonlocal number
            number += 1
            store = Path(folder) / f"store-{number}"
            return (
                1e6
                / n_rows
                * seconds(lambda: prepare_file(store, "text", source, parallel_map=parallel_map))
            )

        def load() -> float:
            return (
                1e6
                / n_rows
                * seconds(
                    lambda: load_svmlight_file(str(source), zero_based=False, n_features=2**31 - 1)
                )
            )

        times = in_turn({PEER: load, ONE: partial(prepare, map)}, repetitions)
        if len(cores) > 1:
            pinned = os.sched_getaffinity(0)
            os.sched_setaffinity(0, cores)
            try:
                with local_cluster(2) as client:
                    times |= in_turn(
                        {TWO: partial(prepare, partial(map_on_dask, client))}, repetitions
                    )
            finally:
                os.sched_setaffinity(0, pinned)
    show(
        f"Preparing LIBSVM text: {n_bytes / 1e6:.0f} MB, {n_rows:,} rows, {n_values / n_rows:.0f}"
        f" values a row; medians of {repetitions}",
        ["what", "MB/s", "rows/s", "least to greatest, s", f"{PEER} / it"],
        [
            [
                name,
                n_bytes / n_rows / t.us,
                f"{t.per_second:,.0f}",
                f"{t.least * n_rows / 1e6:.3g} to {t.greatest * n_rows / 1e6:.3g}",
                times[PEER].us / t.us,
            ]
            for name, t in times.items()
        ],
        "Ours reads, checks, hashes the file and the rows, and writes Parquet shards; the peer"
        " reads into memory, without query ids.",
        "Two cores: a cluster of two workers that has started.",
    )
    return times
