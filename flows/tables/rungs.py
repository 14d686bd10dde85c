"""Runs of a sweep with halving: those to the ends of their streams, and those to a rung before."""

import math

import pyarrow as pa

from flows.tables.decisions import read_decisions
from flows.tables.tables import grouped, lists_of
from koco_stream.io.paths import AnyPath

STREAM = (
    *("dataset", "positive_class", "multiclass", "dataset_hash"),
    *("order", "window_rows", "sharding"),
)


def has_rungs(store: AnyPath, sweep: str) -> bool:
    """Whether a sweep has halved."""
    return read_decisions(store, sweep).num_rows > 0


def whole_runs(store: AnyPath, sweep: str | None, runs: pa.Table) -> pa.Table:
    """Runs of a sweep; if it has halved, without those to its rungs."""
    return without_rungs(runs) if sweep is not None and has_rungs(store, sweep) else runs


def without_rungs(runs: pa.Table) -> pa.Table:
    """Runs of a sweep with halving, without those on a stream that a longer one continues."""
    streams = list(zip(*lists_of(runs, [*STREAM, "max_rows"]), strict=True))
    longest = {
        stream: max(math.inf if rows is None else rows for *_, rows in found)
        for stream, found in grouped(set(streams), lambda one: one[:-1]).items()
    }
    kept = [(math.inf if rows is None else rows) == longest[tuple(s)] for *s, rows in streams]
    return runs.filter(pa.array(kept, pa.bool_()))
