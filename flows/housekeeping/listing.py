"""What `koco list` lists: learners, and the sweeps of a store with their state."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc

from flows.sweeping.status import COLUMNS, statuses
from flows.tables.sweep_runs import sweep_names, sweep_note
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.learners import LEARNERS
from koco_stream.learners.references import entry_points
from storage.collecting import result_bytes
from storage.nights import night_names, night_path
from storage.results import among, read_runs

SWEEP, NIGHT = "sweep", "nightly run"


def sweep_rows(store: AnyPath) -> Iterator[dict[str, Any]]:
    """Rows on the sweeps of a store, and then on its nightly runs.

    Beside the columns of the status, `bytes` are about those of the runs' rows, and of the report;
    a run that several sweeps share counts for each. `ended` is when the last of the runs was
    finished, None if none was.
    """
    yield from _rows(store_path(store), SWEEP)
    for name in night_names(store):
        yield from _rows(night_path(store, name), NIGHT)


def _rows(store: StorePath, kind: str) -> Iterator[dict[str, Any]]:
    runs = read_runs(store, ["run_id", "status", "finished_at"])
    files = [sizes for _, sizes in result_bytes(store)]
    told = {status.sweep: vars(status) for status in statuses(store)}
    noted = sweep_names(store)
    for name in sorted({*told, *noted}):
        row = {**dict.fromkeys(COLUMNS), **told.get(name, {}), "sweep": name, "kind": kind}
        run_ids = set(sweep_note(store, name)["run_ids"]) if name in noted else set()
        mine = runs.filter(among(runs, run_ids))
        if name in noted:
            counts = Counter(mine.column("status").to_pylist())
            row |= {"runs": len(run_ids), "done": mine.num_rows}
            row |= {status: counts[status] for status in ("diverged", "failed")}
        own = sum(size for file in files_of(store, name) for size in file.sizes())
        n_bytes = round(bytes_of(files, run_ids)) + own
        yield {**row, "bytes": n_bytes, "ended": pc.max(mine.column("finished_at")).as_py()}


def bytes_of(files: list[dict[str, float]], run_ids: set[str]) -> float:
    """About how many bytes of files of results, as `result_bytes` has them, belong to runs."""
    return sum(sizes[run_id] for sizes in files for run_id in sizes.keys() & run_ids)


def files_of(store: StorePath, sweep: str) -> list[StorePath]:
    """The files in a store that a sweep has for itself: its report, decisions, status and entry."""
    files = (
        *(store / "reports" / f"{sweep}.{ending}" for ending in ("html", "md", "made.json")),
        store / "results" / "halving" / f"{sweep}.parquet",
        *(store / folder / f"{sweep}.json" for folder in ("status", "sweeps")),
    )
    return [file for file in files if file.is_file()]


def learner_rows(_: AnyPath) -> list[dict[str, Any]]:
    """Rows on the learners of the library, and on those that installed packages offer."""
    library = [
        (
            name,
            "the library",
            ", ".join(f"{one} = {value}" for one, value in cls.defaults().items()),
        )
        for name, cls in LEARNERS.items()
    ]
    offered = [
        (name, f"{found.dist.name} {found.dist.version}", f"those of {found.value}")
        for name, found in entry_points().items()
    ]
    columns = ("learner", "from", "parameters")
    return [dict(zip(columns, row, strict=True)) for row in (*library, *offered)]
