"""A nightly run: a sweep in a store of its own, compared with the accepted night."""

import shlex
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from cluster.machine import cores
from flows.preparing.preparation import prepare_named
from flows.runtime.processes import locked, say
from flows.runtime.recording import recorded, stage
from flows.scores import mean
from flows.sweeping.file import Sweep, sweep_called
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from flows.tables.differences import of_rows
from koco_stream.engine.result_file import machine
from koco_stream.errors import WrongInput
from koco_stream.io.files import canonical_json, content_hash, json_text, text_hash
from koco_stream.io.fingerprint import versions
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.streams.manifest import BORROWED, prepared_names
from storage.catalogue.entries import CATALOGUE
from storage.generated.generators import prepare_synthetic
from storage.nights import (
    IDENTITY,
    OUTCOME,
    accept,
    add_night,
    night_path,
    numbers_of,
    read_accepted,
    read_nights,
)
from storage.store import check_store, existing_store, open_store

LOCK = "nightly"  # of a store, for its nightly runs: they would disturb each other's times
NOTE = "night.json"
# what a night came to, by what is so of any of its rows, the first that holds
RESULTS = {
    "first": "first",
    "changed": "changed numbers",
    "slower": "slower",
    "faster": "faster",
    "same": "same numbers",
}
FAILING = ("changed numbers", "slower")  # results that give exit status 1 and a failed state
BAND = 1.25  # a median of ratios within this factor is the same speed
SHORTEST, FEWEST = 0.05, 3  # seconds of a run, and runs: less than that is noise
SAME_RUN = " AND ".join(f'a."{name}" IS NOT DISTINCT FROM b."{name}"' for name in IDENTITY)
# A row of the history for each dataset and learner, and in `what` sentences on changes: runs `a` of
# the accepted night beside runs `b` of tonight. `is_first` says that no night was accepted.
COMPARED = f"""
WITH pairs AS (
    SELECT coalesce(a.dataset, b.dataset) AS dataset, coalesce(a.learner, b.learner) AS learner,
           a, b, a.dataset_hash = b.dataset_hash AND b.other IS NOT NULL AS changed,
           a.status = 'ok' AND b.status = 'ok' AND a.host = b.host
           AND a.seconds >= {SHORTEST} AND b.seconds >= {SHORTEST} AS timed
    FROM accepted a FULL JOIN tonight b ON {SAME_RUN}
), counts AS (
    SELECT dataset, learner, $is_first AS is_first,
           coalesce(list(b.digest ORDER BY b) FILTER (b.status IS NOT NULL), []) AS digest,
           coalesce(list(b.mean_loss ORDER BY b) FILTER (b.mean_loss IS NOT NULL), []) AS mean_loss,
           count(*) FILTER (a.status IS NOT NULL AND b.status IS NOT NULL) AS in_both,
           len(digest) - in_both AS new,
           count(*) FILTER (b.status IS NULL) AS gone,
           count(*) FILTER (a.dataset_hash <> b.dataset_hash) AS data,
           count(*) FILTER (changed) AS other,
           first(b.other ORDER BY b) FILTER (changed) AS such_as,
           max(abs(b.mean_loss - a.mean_loss)
               / coalesce(nullif(greatest(abs(a.mean_loss), abs(b.mean_loss)), 0), 1))
               FILTER (changed) AS largest_change,
           if(count(*) FILTER (timed) >= {FEWEST} AND NOT is_first,
              median(b.seconds / a.seconds) FILTER (timed), NULL) AS ratio,
           coalesce(sum(b.seconds), 0) AS scan_seconds
    FROM pairs GROUP BY dataset, learner
), verdicts AS (
    SELECT *, len(digest) AS runs, other + data + gone AS changed,
           CASE WHEN is_first THEN 'first' WHEN other + data + gone > 0 THEN 'changed'
                WHEN new > 0 THEN 'new' ELSE 'same' END AS numbers,
           CASE WHEN ratio > {BAND} THEN 'slower' WHEN ratio * {BAND} < 1 THEN 'faster'
                WHEN ratio IS NOT NULL THEN 'same' END AS speed
    FROM counts
)
SELECT *, list_transform(list_filter([
    if(other > 0, format('{{:,}} of {{:,}} runs have changed numbers', other, in_both)
       || format(' ({{}})', such_as)
       || coalesce(format(', mean loss by up to {{:.1e}} of itself', largest_change), ''), NULL),
    if(data > 0, format('the dataset has other rows than in the accepted run ({{:,}} runs)', data),
       NULL),
    if(gone > 0, format('{{:,}} of {{:,}} runs of the accepted run are gone', gone, in_both + gone),
       NULL),
    if(new > 0, format('{{:,}} runs that the accepted run did not have', new), NULL),
    if(speed <> 'same',
       format('{{}}, {{:+.0f}}% of the accepted seconds', speed, 100 * (ratio - 1)), NULL)
], lambda one: one IS NOT NULL), lambda one: learner || ' on ' || dataset || ': ' || one) AS what
FROM verdicts ORDER BY dataset, learner"""

Row = dict[str, Any]


@dataclass(frozen=True)
class Note:
    night: str
    code: str
    file: str


def launch_nightly(request: SweepRequest, prefect: bool | None = None) -> dict[str, Any]:
    """Do a nightly run by hand. Wrong input is found before anything starts."""
    sweep = sweep_called(request.sweep_file, request.store)
    check_store(request.store)
    request.start_of_cluster(0)
    request = replace(request, store=str(store_path(request.store)))
    given = {name: value for name, value in vars(request).items() if name != "retry_failed"}
    return recorded(
        "nightly_flow", sweep.name, given, partial(run_night, request, sweep), prefect, state_of
    )


def run_night(
    request: SweepRequest, sweep: Sweep, planned: datetime | None = None
) -> dict[str, Any]:
    """Recompute a sweep and compare it with the accepted night, which the first one becomes."""
    started_at = time.monotonic()
    store = request.store
    open_store(store)
    with locked(store, LOCK, f"another nightly run is under way on {store}; waiting for it"):
        name = (planned or datetime.now(UTC)).isoformat()
        if has_ended(store, sweep.name, name):
            return {}
        say(f"nightly {sweep.name}: {f'planned for {planned}' if planned else 'started by hand'}")
        stage("prepare", prepare_missing, store, sweep)
        path = opened_night(store, sweep, name)
        computed = launch(replace(request, store=str(path)), prefect=False)
        result, lines = stage("compare", compare, store, sweep.name, path, name)
    say("\n  ".join([f"nightly {sweep.name}: {result}", *lines]))
    return {
        "sweep": sweep.name,
        "store": store,
        "night": name,
        "result": result,
        "details": lines,
        **{key: computed[key] for key in ("runs", "computed", "statuses", "report")},
        "seconds": round(time.monotonic() - started_at, 2),
    }


def state_of(summary: dict[str, Any]) -> Any:
    from prefect.states import Completed, Failed

    ended = Failed if summary["result"] in FAILING else Completed
    message = "; ".join([summary["result"], *summary["details"]])
    return ended(name=summary["result"].capitalize(), message=message, data=summary)


def prepare_missing(store: str, sweep: Sweep) -> None:
    """Prepare generated and catalogue datasets; the sweep reports others that are missing."""
    for use in sweep.datasets:
        if use.given is not None:
            prepare_synthetic(store, use.table.name, use.given)
        elif use.name in CATALOGUE and use.name not in prepared_names(store):
            prepare_named(store, use.name, (), {}, cores())


def opened_night(store: AnyPath, sweep: Sweep, name: str) -> StorePath:
    """Open the night's store: as it was, if a night of the same code and file was interrupted."""
    path = night_path(store, sweep.name)
    note = note_in(path)
    mine = Note(name, canonical_json(versions()), text_hash(sweep.text))
    if (
        note is None
        or replace(note, night=name) != mine
        or has_ended(store, sweep.name, note.night)
    ):
        path.remove_tree()
        open_store(path)
        (path / BORROWED).write_text(f"{store_path(store)}\n")
    (path / NOTE).write_text(json_text(asdict(mine)) + "\n")
    return path


def note_in(path: StorePath) -> Note | None:
    try:
        return TypeAdapter(Note).validate_json((path / NOTE).read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        raise WrongInput(f"{path / NOTE} is damaged; remove it, and it is written anew") from None


def has_ended(store: AnyPath, sweep: str, night: str) -> bool:
    return night in read_nights(store, sweep).column("night").to_pylist()


def compare(store: str, sweep: str, path: StorePath, name: str) -> tuple[str, list[str]]:
    code = canonical_json(versions())
    numbers = numbers_of(path)
    rows = compared(read_accepted(store, sweep), numbers)
    result = result_of(rows)
    common = {
        "night": name,
        "ended": datetime.now(UTC),
        "sweep": sweep,
        "result": result,
        "accepted": False,
        "code": code,
        "host": machine(),
    }
    add_night(store, sweep, [{**common, **row} for row in rows])
    if result == "first":
        accept(store, sweep, name, numbers)
    lines = [line for row in rows for line in row["what"]]
    codes = [row["code"] for row in read_nights(store, sweep).to_pylist() if row["accepted"]]
    if result == "changed numbers" and codes:
        lines.append(
            "code and versions are those of the accepted run: its numbers should be the same"
            if codes[-1] == code
            else f"code or versions are not those of the accepted run: {codes[-1]} then, {code} now"
        )
    if result in FAILING:
        lines.append(
            f"if this change is intended: koco nightly accept {sweep} --store {shlex.quote(store)}"
        )
    return result, lines


def compared(accepted: pa.Table, tonight: pa.Table) -> list[Row]:
    import duckdb

    differ = of_rows(accepted.to_pylist(), tonight.to_pylist(), IDENTITY, (*OUTCOME, "digest"))
    first = [
        next((f"{name} was {old}, is {new}" for name, old, new in differ[*row.values()]), None)
        for row in tonight.select(IDENTITY).to_pylist()
    ]
    connection = duckdb.connect(":memory:")
    connection.register("tonight", tonight.append_column("other", pa.array(first, pa.string())))
    connection.register("accepted", accepted if accepted.num_rows else tonight)
    rows = connection.sql(COMPARED, params={"is_first": not accepted.num_rows}).to_arrow_table()
    return [
        {**row, "digest": content_hash(row["digest"]), "mean_loss": mean(row["mean_loss"])}
        for row in rows.to_pylist()
    ]


def result_of(rows: Sequence[Row]) -> str:
    verdicts = {"same"}.union(*((row["numbers"], row["speed"]) for row in rows))
    return next(RESULTS[one] for one in RESULTS if one in verdicts)


def without_nights(store: StorePath) -> AbstractContextManager[None]:
    busy = f"a nightly run is under way on {store}; wait until it has ended, or stop it"
    return locked(store, LOCK, WrongInput(busy))


def accept_last(store: AnyPath, sweep: str) -> str:
    with without_nights(existing_store(store)):
        path = night_path(store, sweep)
        note = note_in(path)
        if note is None:
            raise WrongInput(
                f"{store_path(store)} has no nightly run of a sweep {sweep!r}; start one with koco"
                " nightly"
            )
        if not has_ended(store, sweep, note.night):
            raise WrongInput(
                f"the nightly run of {sweep!r} that began at {note.night} has not ended; start it"
                " again"
            )
        accept(store, sweep, note.night, numbers_of(path))
    return note.night
