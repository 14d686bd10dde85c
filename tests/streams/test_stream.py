"""Streams: every order is a permutation and depends on nothing but its seed; copies are made once,
whole, and within the cache's limit; what a run saw can be made again by hand.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, strategies as st

import flows
import koco_stream
from koco_stream.runs.schemas import curve_points
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.shard_cache import copy_bytes
from koco_stream.streams.stream import ShuffledInWindows, Stream, sharding_of, shuffled
from storage.preparing.prepare import Preparing, prepare_source
from tests.helpers.project import environment
from tests.helpers.refusal import refusal
from tests.helpers.shared_pages import held_by_two
from tests.helpers.tables import table_of

ORDERS = ("as-stored", "shuffled", "shuffled-in-windows")


def published(store, name, n_rows, n_shards, layout="dense", d=7):
    """A dataset whose first feature is the row's number from 1, in about this many shards; its
    labels are −1, 0 and +1.
    """
    X = np.tile(np.arange(1.0, d + 1), (n_rows, 1))
    X[:, 0] = np.arange(1, n_rows + 1)
    if layout == "sparse":
        X[:, 1:][np.arange(n_rows)[:, None] % np.arange(2, d + 1) == 0] = 0.0
    csr, labels = scipy.sparse.csr_array(X), np.arange(n_rows) % 3 - 1.0
    table = table_of(csr if layout == "sparse" else X, labels)
    most = -(-csr.nnz // n_shards) if layout == "sparse" else -(-n_rows // n_shards) * d
    return prepare_source(store, name, table, Preparing(values_per_shard=most))


def stream_of(manifest, order="as-stored", seed=0, window_rows=None, **more):
    if order == "as-stored":
        return Stream(manifest.name, manifest.dataset_hash, **more)
    if order == "shuffled-in-windows":
        more |= {"window_rows": window_rows or 16, "sharding": sharding_of(manifest)}
    return Stream(manifest.name, manifest.dataset_hash, order, seed, **more)


def read(store, stream, block_rows=4096):
    """All rows of a stream as a matrix, and its labels."""
    X, y = [], []
    for rows, labels in StreamReader(store, stream).blocks(block_rows):
        assert 0 < rows.n_rows <= block_rows
        X.append(rows.to_scipy().toarray())
        y.append(labels)
    return np.vstack(X), np.concatenate(y)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def copies(cache, suffix="arrow"):
    return sorted(cache.glob(f"datasets/*/*.{suffix}"))


sizes = st.lists(st.integers(1, 30), min_size=1, max_size=8)


@pytest.mark.parametrize(
    "make",
    [lambda sizes, seed, window_rows: shuffled(sum(sizes), seed), ShuffledInWindows],
    ids=["shuffled", "in windows"],
)
@given(
    sizes=sizes,
    seed=st.integers(0, 2**63 - 1),
    window_rows=st.integers(1, 60),
    cut=st.integers(1, 50),
)
def test_every_order__is_a_permutation_however_it_is_cut(make, sizes, seed, window_rows, cut):
    n = sum(sizes)
    order = make(sizes, seed, window_rows)
    whole = order[0:n].tolist()
    assert sorted(whole) == list(range(n))
    order = make(sizes, seed, window_rows)
    for start in range(0, n, cut):
        stop = min(start + cut, n)
        assert order[start:stop].tolist() == whole[start:stop]


@given(sizes=sizes, seed=st.integers(0, 99), window_rows=st.integers(1, 60))
def test_windows__hold_consecutive_rows_of_the_shards_in_their_order(sizes, seed, window_rows):
    order, n = ShuffledInWindows(sizes, seed, window_rows), sum(sizes)
    firsts = np.cumsum([0, *sizes])
    sequence = [row for k in order.sequence for row in range(firsts[k], firsts[k + 1])]
    assert sorted(order.sequence.tolist()) == list(range(len(sizes)))
    for start in range(0, n, window_rows):
        rows = order[start : min(start + window_rows, n)]
        assert sorted(rows.tolist()) == sorted(sequence[start : start + window_rows])


def test_windows__need_the_numbers_of_one_window_only():
    order = ShuffledInWindows([10**9] * 1000, 0, 1000)  # n numbers would take 8 TB
    middle = 5 * 10**11
    assert len(set(order[middle - 2000 : middle + 2000].tolist())) == 4000


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_full_shuffle__is_the_same_from_1_2_and_5_shards(layout, tmp_path):
    manifests = {k: published(tmp_path / str(k), "a", 203, k, layout) for k in (1, 2, 5)}
    assert len({len(manifest.shards) for manifest in manifests.values()}) == 3
    for seed in (0, 1):
        # the permutation that published numbers rest on
        order = np.random.default_rng([seed, 0x0D]).permutation(203)
        found = set()
        for k, manifest in manifests.items():
            X, y = read(tmp_path / str(k), stream_of(manifest, "shuffled", seed), 50)
            assert X[:, 0].tolist() == (order + 1).tolist()
            found.add((X.tobytes(), y.tobytes()))
        assert len(found) == 1


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("order", ORDERS)
def test_blocks__of_any_size_give_the_same_rows(order, layout, tmp_path):
    manifest = published(tmp_path, "a", 203, 5, layout)
    for more in ({}, {"max_rows": 100, "positive_class": 1.0}):
        stream = stream_of(manifest, order, 3, **more)
        X, y = read(tmp_path, stream)
        rows = X[:, 0].astype(int) - 1
        assert len(set(rows.tolist())) == len(rows) == more.get("max_rows", 203)
        assert (order == "as-stored") == (rows == np.arange(len(rows))).all()
        assert y.tolist() == [(1.0 if r % 3 == 2 else -1.0) if more else r % 3 - 1.0 for r in rows]
        for block_rows in (1, 7, 41, 100):
            again, labels = read(tmp_path, stream, block_rows)
            assert (again.tobytes(), labels.tobytes()) == (X.tobytes(), y.tobytes())
        whole = StreamReader(tmp_path, stream).whole()
        assert whole.labels.tobytes() == y.tobytes()
        assert whole.rows.values.tobytes() == X[X != 0].astype(whole.rows.values.dtype).tobytes()


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_stored_blocks__are_views_of_the_mapped_copy(layout, tmp_path):
    reader = StreamReader(tmp_path, stream_of(published(tmp_path, layout, 203, 3, layout)))
    for rows, labels in reader.blocks(50):
        (shard,) = reader.opened.values()
        assert np.shares_memory(rows.values, shard.values)
        assert np.shares_memory(labels, shard.labels)
        assert not rows.values.flags.writeable


def test_blocks__with_zeros_keep_them_without_a_copy(tmp_path):
    table = table_of(np.array([[0.0, 1], [2, 0], [3, 0]]), np.ones(3))
    reader = StreamReader(tmp_path, stream_of(prepare_source(tmp_path, "a", table)))
    (with_zeros,), (without,) = reader.blocks(zeros=True), reader.blocks()
    assert with_zeros.rows.values.tolist() == [0, 1, 2, 0, 3, 0]
    assert np.shares_memory(with_zeros.rows.values, reader.opened[0].values)
    assert without.rows.values.tolist() == [1, 2, 3]


def test_identity__of_windows_has_their_size_and_the_sharding(tmp_path):
    two, five = (published(tmp_path / str(k), "a", 203, k) for k in (2, 5))
    assert two.dataset_hash == five.dataset_hash
    streams = [stream_of(m, "shuffled-in-windows", 0, w) for m in (two, five) for w in (16, 17)]
    assert len({str(stream.identity()) for stream in streams}) == 4
    refusal("prepared again", StreamReader, tmp_path / "5", streams[0])
    assert streams[0].reduced(203, []).window_rows == 16
    # beyond all rows there is one window, however large
    assert streams[0].reduced(10, []).window_rows == 10


def test_opening__looks_at_no_shard_before_its_rows_are_reached(cache, tmp_path):
    manifest = published(tmp_path, "a", 60, 6)
    for order in ORDERS:
        assert StreamReader(tmp_path, stream_of(manifest, order)).n_rows == 60
    assert copies(cache) == []
    reader = StreamReader(tmp_path, stream_of(manifest))
    for k, _ in enumerate(reader.blocks(10)):
        assert (len(copies(cache)), list(reader.opened)) == (k + 1, [k])


@pytest.mark.parametrize("order", ["as-stored", "shuffled-in-windows"])
@pytest.mark.parametrize("room", [0.5, 1.0, 2.5])
def test_dataset_larger_than_the_limit__streams_with_some_shards_copied_at_a_time(
    order, room, cache, tmp_path, monkeypatch
):
    manifest = published(tmp_path, "a", 12_000, 6)
    stream = stream_of(manifest, order, 0, 500)
    expected, _ = read(tmp_path, stream)
    one = max(copy_bytes(manifest, shard) for shard in manifest.shards)
    shutil.rmtree(cache)
    monkeypatch.setenv("KOCO_CACHE_BYTES", str(int(room * one)))
    for _ in range(2):
        X = []
        for rows, _ in StreamReader(tmp_path, stream).blocks(250):
            X.append(rows.values.reshape(rows.n_rows, -1))
            assert sum(path.stat().st_size for path in copies(cache)) <= max(int(room * one), one)
        assert np.vstack(X).tobytes() == expected.tobytes()
    assert not copies(cache, "tmp")


def test_full_shuffle__of_a_dataset_larger_than_the_limit_is_refused(cache, tmp_path, monkeypatch):
    manifest = published(tmp_path, "a", 1000, 4)
    needed = sum(copy_bytes(manifest, shard) for shard in manifest.shards)
    monkeypatch.setenv("KOCO_CACHE_BYTES", str(needed))
    assert len(read(tmp_path, stream_of(manifest, "shuffled"), 100)[1]) == 1000
    monkeypatch.setenv("KOCO_CACHE_BYTES", str(needed - 1))
    said = rf"{needed:,} bytes.*limit is {needed - 1:,}.*shuffled-in-windows.*KOCO_CACHE_BYTES"
    refusal(said, StreamReader, tmp_path, stream_of(manifest, "shuffled"))


@pytest.mark.parametrize("given", ["", "0", "-5", "10G", "1e9", "½"])
def test_limit__that_is_no_number_of_bytes_is_refused(given, cache, tmp_path, monkeypatch):
    manifest = published(tmp_path, "a", 10, 1)
    monkeypatch.setenv("KOCO_CACHE_BYTES", given)
    refusal(r"KOCO_CACHE_BYTES is .*positive whole number", read, tmp_path, stream_of(manifest), 10)


def test_room__is_made_by_copies_of_the_future_first__and_what_is_mapped_stays_readable(
    cache, tmp_path, monkeypatch
):
    """They were used while the clock was ahead; otherwise they would stay for as long as that."""
    manifests = [published(tmp_path, name, 1000 + k, 1) for k, name in enumerate("abcd")]
    one = max(copy_bytes(m, m.shards[0]) for m in manifests)
    monkeypatch.setenv("KOCO_CACHE_BYTES", str(3 * one))
    mapped = StreamReader(tmp_path, stream_of(manifests[0])).blocks(10)
    next(mapped)
    for k in (1, 2):
        read(tmp_path, stream_of(manifests[k]))
    later = time.time() + 1e9
    for path in copies(cache):
        if path.parent.name == manifests[0].dataset_hash[:32]:
            os.utime(path, (later, later))
    read(tmp_path, stream_of(manifests[3]))
    kept = {manifests[k].dataset_hash[:32] for k in (1, 2, 3)}
    assert {path.parent.name for path in copies(cache)} == kept
    assert [labels.size for _, labels in mapped] == [10] * 99


@pytest.mark.parametrize("kept", [0, 1000, -1])
def test_copy_that_was_cut__is_noticed_and_made_again(kept, cache, tmp_path):
    manifest = published(tmp_path, "a", 1000, 1)
    expected, _ = read(tmp_path, stream_of(manifest))
    (path,) = copies(cache)
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    again, _ = read(tmp_path, stream_of(manifest))
    assert again.tobytes() == expected.tobytes()
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"), "altered or damaged"),
        (Path.unlink, "prepare the dataset again"),
    ],
)
def test_shard_that_is_not_what_was_prepared__is_refused(harm, said, cache, tmp_path):
    manifest = published(tmp_path, "a", 100, 2)
    path = tmp_path / "datasets" / "a" / manifest.shards[1].path
    harm(path)
    blocks = StreamReader(tmp_path, stream_of(manifest)).blocks()
    next(blocks)
    refusal(rf"{path.name}.*{said}", next, blocks)
    assert (len(copies(cache)), copies(cache, "tmp")) == (1, [])


READ = """
import sys
from koco_stream.streams.stream import Stream
from koco_stream.streams.reader import StreamReader
store, name, identity = sys.argv[1:4]
reader = StreamReader(store, Stream(name, identity))
"""


def reading(code, store, manifest, *words):
    """A process that has a `reader` of the dataset and runs `code`, with more words to it."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", READ + code, store, manifest.name, manifest.dataset_hash]
    return subprocess.Popen([*command, *words], env=environment(), text=True, **pipes)


MADE = """
made = []
def note(event, words):
    if event == "os.rename" and str(words[1]).endswith(".arrow"):
        made.append(1)
sys.addaudithook(note)
print("ready", flush=True)
input()
list(reader.blocks())
print(len(made), flush=True)
"""


def test_two_processes_at_once__make_each_copy_once(cache, tmp_path):
    manifest = published(tmp_path, "a", 30_000, 10)
    both = [reading(MADE, tmp_path, manifest) for _ in range(2)]
    assert [one.stdout.readline() for one in both] == ["ready\n"] * 2
    for one in both:
        print(file=one.stdin, flush=True)
    said = [one.communicate(timeout=60) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert (sum(int(out) for out, _ in said), len(copies(cache))) == (10, 10)


KILLED = """
import os, signal
def end(event, words):
    if event == sys.argv[4] and (event == "os.truncate" or str(words[1]).endswith(".arrow")):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(end)
list(reader.blocks())
"""


# with nothing written yet, and with all written but not renamed
@pytest.mark.parametrize("moment", ["os.truncate", "os.rename"])
def test_maker_that_is_killed__leaves_nothing_that_is_believed(moment, cache, tmp_path):
    manifest = published(tmp_path, "a", 3000, 1)
    for then in (manifest, published(tmp_path, "b", 2000, 1)):
        killed = reading(KILLED, tmp_path, manifest, moment)
        killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL
        assert len(copies(cache, "tmp")) == 1
        # the same copy is made, then another that needs room
        X, _ = read(tmp_path, stream_of(then))
        assert X[:, 0].tolist() == list(range(1, then.n_rows + 1))
        assert not copies(cache, "tmp")
        shutil.rmtree(cache)


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
list(reader.blocks())
"""


def test_disk_that_takes_no_more__is_said_with_the_folder(cache, tmp_path):
    full = reading(FULL, tmp_path, published(tmp_path, "a", 3000, 1))
    _, said = full.communicate(timeout=60)
    assert full.returncode == 1
    assert f"OSError: [Errno 27] no disk space for {cache}/datasets/" in said
    assert "free some space on its disk, or set KOCO_CACHE to a folder on another disk" in said
    assert copies(cache) + copies(cache, "tmp") == []


@pytest.mark.skipif(
    not Path("/proc/self/smaps").is_file(), reason="needs Linux's account of memory"
)
def test_two_processes__hold_one_copy_in_memory(cache, tmp_path):
    manifest = published(tmp_path, "a", 150_000, 4, d=100)
    for _ in StreamReader(tmp_path, stream_of(manifest)).blocks():
        pass  # so that neither process makes the copy
    rss, pss, anonymous = held_by_two(tmp_path, stream_of(manifest))
    assert rss > 55_000  # of 60 MB
    assert 0.45 < pss / rss < 0.55
    assert anonymous < 12_000


BY_HAND = [
    {},
    {"order": "shuffled", "order_seeds": [3], "max_rows": 333},
    {"order": "shuffled-in-windows", "order_seeds": [1], "window_rows": 64},
]
LEARNERS = [
    {"name": "OjaSON", "sketch_size": 3},
    {"name": "CONKONS", "bandwidth": 2.0},
    {"name": "AdaGrad"},
]


def stream_of_row(store, row):
    """The stream of a row of the table `runs`."""
    names = ("dataset", "order", "order_seed", "positive_class", "max_rows", "window_rows")
    return koco_stream.stream(store, **{name: row[name] for name in names})


@pytest.fixture
def runs(small_store):
    """The runs of three learners on both datasets in three orders, as the table has them, with the
    points of their curves.
    """
    found, points = [], {}
    for number, order in enumerate(BY_HAND):
        spec = {
            "name": f"by-hand-{number}",
            "dataset": [
                {"name": "sparse", "positive_class": 2, **order},
                {"name": "real", **order},
            ],
            "learner": LEARNERS,
            "learner_seeds": [5],
        }
        swept = flows.sweep(spec, small_store, workers=0)
        found += swept.runs.to_pylist()
        for point in swept.curves.to_pylist():
            points.setdefault(point["run_id"], []).append((point["t"], point["cumulative_loss"]))
    return [row | {"points": points[row["run_id"]]} for row in found]


def test_every_run__is_made_again_by_hand_to_the_bit(runs, small_store):
    """In whole and in blocks of another size, the losses summed up in order are the table's."""
    assert len(runs) == 18
    for row in runs:
        seed = {} if row["learner_seed"] is None else {"seed": row["learner_seed"]}
        model = getattr(koco_stream, row["learner"])(**json.loads(row["params"]), **seed)
        X, y = stream_of_row(small_store, row).whole()
        record = model.record(X, y)
        losses = np.cumsum(record["loss"].to_numpy())
        assert losses[-1] / y.size == row["mean_loss"], row
        assert row["points"] == [(t, losses[t - 1]) for t in map(int, curve_points(y.size))]
        predictions = record["prediction"].to_numpy()
        if row["learner"] == "OjaSON":
            rows = scipy.sparse.csr_array(X).toarray()
            least = rows @ np.linalg.lstsq(rows, y, rcond=None)[0]
            assert row["regret"] == pytest.approx(losses[-1] - ((least - y) ** 2).sum(), abs=1e-6)
        wrong = np.mean(np.where(predictions >= 0, 1, -1) != y)
        assert row["error_rate"] == (wrong if row["dataset"] == "sparse" else None)
        again = type(model)(**model.get_params())
        blocks = stream_of_row(small_store, row).blocks(17)
        assert np.array_equal(np.concatenate([again.progressive(*b) for b in blocks]), predictions)


def test_rows__are_a_matrix_as_the_dataset_is(small_store):
    dense, sparse = (koco_stream.stream(small_store, name) for name in ("real", "sparse"))
    assert (len(dense), dense.n_features, dense.classes) == (500, 6, ())
    assert (sparse.n_rows, sparse.n_features, sparse.classes) == (700, 40, (1.0, 2.0, 3.0))
    [(X, y)] = dense
    assert X.shape == (500, 6)
    assert np.array_equal(X, dense.whole()[0])
    assert np.array_equal(y, dense.whole()[1])
    rows = np.concatenate([X.toarray() for X, _ in sparse.blocks(9)])
    assert np.array_equal(rows, sparse.whole()[0].toarray())
    assert np.allclose(np.linalg.norm(rows, axis=1)[rows.any(axis=1)], 1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"dataset": "sparce"}, "did you mean 'sparse'"),
        ({"dataset": "sparse", "order": "shufled"}, "no order 'shufled'; did you mean 'shuffled'"),
        ({"dataset": "sparse", "positive_class": 4}, "no label 4; it has 1, 2, 3"),
        ({"dataset": "real", "positive_class": 1}, "no label 1; it has real numbers"),
    ],
)
def test_wrong_name__is_refused_with_the_nearest(asked, said, small_store):
    refusal(said, koco_stream.stream, small_store, **asked)
