"""Streaming: a learner that only adds up every index and every value, on prepared 20news, cached or
cold; and what two processes hold.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from koco_stream.io.cache import private_folder
from koco_stream.numerics.compiler import jit
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream, sharding_of
from tests.bench import data
from tests.bench.measure import in_turn, seconds, show
from tests.helpers.shared_pages import held_by_two

WARM, AGAIN, COLD = (
    "as stored, cached",
    "as stored, cached, the pages mapped before",
    "as stored, cold: from Parquet, its hash checked",
)
PASSES = 10  # over the stream, in one repetition of what is fast


@jit
def add_up(indptr, indices, values, totals):
    """totals[0] += every index, totals[1] += every value: four sums side by side, so that no
    addition waits for the one before.
    """
    for t in range(indptr.size - 1):
        lo, hi = indptr[t], indptr[t + 1]
        fours = lo + (hi - lo) // 4 * 4
        index, v0, v1, v2, v3 = np.int64(0), 0.0, 0.0, 0.0, 0.0
        for i in range(lo, fours, 4):
            index += np.int64(indices[i]) + indices[i + 1] + indices[i + 2] + indices[i + 3]
            v0 += values[i]
            v1 += values[i + 1]
            v2 += values[i + 2]
            v3 += values[i + 3]
        for i in range(fours, hi):
            index += indices[i]
            v0 += values[i]
        totals[0] += index
        totals[1] += (v0 + v1) + (v2 + v3)


def one_pass(reader: StreamReader) -> np.ndarray:
    """The sums over a stream: (2,)."""
    totals = np.zeros(2)
    for rows, _ in reader.blocks():
        add_up(rows.indptr, rows.indices, rows.values, totals)
    return totals


@contextmanager
def own_cache(folder: Path) -> Iterator[Path]:
    """A cache folder of the measurement's own, which has what is compiled."""
    before, compiled = os.environ.get("KOCO_CACHE"), private_folder("compiled")
    folder.mkdir(mode=0o700)
    (folder / "compiled").symlink_to(compiled)
    os.environ["KOCO_CACHE"] = str(folder)
    try:
        yield folder
    finally:
        os.environ.pop("KOCO_CACHE")
        if before is not None:
            os.environ["KOCO_CACHE"] = before


def streaming(repetitions: int) -> dict[str, float]:
    """Measure and print. Returns non-zeros a second from the cache, and the memory that two
    processes hold of a copy over its size.
    """
    with (
        tempfile.TemporaryDirectory(prefix="koco-bench-") as folder,
        own_cache(Path(folder) / "cache") as cache,
    ):
        store = Path(folder) / "store"
        manifest = data.prepared_news(store)
        stored = Stream(manifest.name, manifest.dataset_hash)
        windows = {"window_rows": 4096, "sharding": sharding_of(manifest)}
        shuffles = {
            "shuffled in windows of 4,096 rows, cached": Stream(
                stored.dataset, stored.dataset_hash, "shuffled-in-windows", 0, **windows
            ),
            "shuffled, cached": Stream(stored.dataset, stored.dataset_hash, "shuffled", 0),
        }
        opened = StreamReader(store, stored)
        expected = one_pass(opened)
        assert all(
            (one_pass(StreamReader(store, stream)) == expected).all()
            for stream in shuffles.values()
        )  # whole numbers, exactly

        def timed(work: Callable[[], object], passes: int = PASSES) -> Callable[[], float]:
            return lambda: (
                1e6 * seconds(lambda: [work() for _ in range(passes)]) / passes / manifest.n_values
            )

        def cold() -> float:
            shutil.rmtree(cache / "datasets")
            return timed(lambda: one_pass(StreamReader(store, stored)), 1)()

        contestants = {
            WARM: timed(lambda: one_pass(StreamReader(store, stored))),
            AGAIN: timed(lambda: one_pass(opened)),
        }
        contestants |= {
            name: timed(lambda stream=stream: one_pass(StreamReader(store, stream)), 2)
            for name, stream in shuffles.items()
        }
        times = in_turn(contestants, repetitions) | in_turn({COLD: cold}, min(repetitions, 3))
        rss, pss, anonymous = held_by_two(store, stored)
    show(
        f"{manifest.name}, prepared ({manifest.n_values:,} non-zeros in {len(manifest.shards)}"
        " shard(s)): every index and value added up",
        ["stream", "ns a non-zero", "least to greatest", "10^6 non-zeros a second"],
        [
            [name, 1e3 * t.us, f"{1e3 * t.least:.3g} to {1e3 * t.greatest:.3g}", 1.0 / t.us]
            for name, t in times.items()
        ],
        f"Medians of {repetitions} in turn (cold: of {min(repetitions, 3)}). But for the second"
        " line, opening the stream is included.",
        f"Two processes that read it at once: each maps {rss / 1024:.1f} MiB of it and its share is"
        f" {pss / 1024:.1f} MiB; of its own each has {anonymous / 1024:.1f} MiB more than before.",
    )
    return {"cached": 1e6 / times[WARM].us, "held": 2 * pss / rss}
