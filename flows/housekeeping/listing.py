"""The sweeps of a store: their runs, the room that they take, and when their last run ended."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow.compute as pc

from flows.tables.sweep_runs import sweep_names, sweep_note
from koco_stream.io.paths import StorePath
from storage.collecting import result_bytes
from storage.nights import night_names, night_path
from storage.results import among, read_runs

COLUMNS = ("sweep", "kind", "runs", "done", "diverged", "failed", "bytes", "ended")
SWEEP, NIGHT = "sweep", "nightly run"
UNITS = ("bytes", "kB", "MB", "GB", "TB")


def sweep_rows(store: StorePath) -> Iterator[dict[str, Any]]:
    """Rows of `koco list`, with the columns `COLUMNS`: the sweeps, and then the nightly runs.

    `bytes` are about those of its runs' rows, and of its report; a run that several sweeps share
    counts for each. `ended` is when the last of its runs was finished, None if none was.
    """
    yield from _rows(store, sweep_names(store), SWEEP)
    for name in night_names(store):
        yield from _rows(night_path(store, name), [name], NIGHT)


def _rows(store: StorePath, names: Iterable[str], kind: str) -> Iterator[dict[str, Any]]:
    runs = read_runs(store, ["run_id", "status", "finished_at"])
    sizes = defaultdict[str, float](float)
    for _, of_file in result_bytes(store):
        for run_id, n_bytes in of_file.items():
            sizes[run_id] += n_bytes
    for name in names:
        run_ids = sweep_note(store, name)["run_ids"]
        mine = runs.filter(among(runs, set(run_ids)))
        statuses = Counter(mine.column("status").to_pylist())
        yield {
            "sweep": name,
            "kind": kind,
            "runs": len(run_ids),
            "done": mine.num_rows,
            "diverged": statuses["diverged"],
            "failed": statuses["failed"],
            "bytes": round(sum(sizes[run_id] for run_id in run_ids if run_id in sizes))
            + sum(size for file in files_of(store, name) for size in file.sizes()),
            "ended": pc.max(mine.column("finished_at")).as_py(),
        }


def files_of(store: StorePath, sweep: str) -> list[StorePath]:
    """The files in a store that a sweep has for itself: its report, decisions, status and entry."""
    reports, sweeps = store / "reports", store / "sweeps"
    files = [reports / f"{sweep}.{ending}" for ending in ("html", "md", "made.json")]
    files += [store / "results" / "halving" / f"{sweep}.parquet"]
    files += [store / "status" / f"{sweep}.json", sweeps / f"{sweep}.json"]
    return [file for file in files if file.is_file()]


def bytes_text(n_bytes: int) -> str:
    """A number of bytes in the unit that leaves it below a thousand: `1.5 MB`."""
    size, unit = float(n_bytes), 0
    while size >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {UNITS[unit]}"
