"""Streaming: a learner that only adds up every index and every value, on prepared 20news, cached or
cold; and what two processes hold.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from koco_stream.io.cache import private_folder
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from tests.bench import data
from tests.bench.measure import in_turn, seconds, show
from tests.helpers.shared_pages import held_by_two

WARM, COLD = "as stored, cached", "as stored, cold: from Parquet, its hash checked"
PASSES = 10  # over the stream, in one repetition of what is fast


def one_pass(reader: StreamReader) -> tuple[int, float]:
    """The sums of every index and every value of a stream."""
    index, value = 0, 0.0
    for rows, _ in reader.blocks():
        index += int(rows.indices.sum())
        value += float(rows.values.sum())
    return index, value


@contextmanager
def own_cache(folder: Path) -> Iterator[Path]:
    """A cache folder of the measurement's own, which has what is compiled."""
    folder.mkdir(mode=0o700)
    (folder / "compiled").symlink_to(private_folder("compiled"))
    with patch.dict(os.environ, {"KOCO_CACHE": str(folder)}):
        yield folder


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
        shuffled = Stream(stored.dataset, stored.dataset_hash, "shuffled", 0)
        sums = [one_pass(StreamReader(store, stream)) for stream in (stored, shuffled)]
        assert sums[0] == sums[1]  # whole numbers, exactly

        def timed(work: Callable[[], object], passes: int = PASSES) -> Callable[[], float]:
            return lambda: (
                1e6 * seconds(lambda: [work() for _ in range(passes)]) / passes / manifest.n_values
            )

        def cold() -> float:
            shutil.rmtree(cache / "datasets")
            return timed(lambda: one_pass(StreamReader(store, stored)), 1)()

        contestants = {
            WARM: timed(lambda: one_pass(StreamReader(store, stored))),
            "shuffled, cached": timed(lambda: one_pass(StreamReader(store, shuffled)), 2),
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
        f"Medians of {repetitions} in turn (cold: of {min(repetitions, 3)}), with opening the"
        " stream.",
        f"Two processes that read it at once: each maps {rss / 1024:.1f} MiB of it and its share is"
        f" {pss / 1024:.1f} MiB; of its own each has {anonymous / 1024:.1f} MiB more than before.",
    )
    return {"cached": 1e6 / times[WARM].us, "held": 2 * pss / rss}
