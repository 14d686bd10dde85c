"""The stages of a nightly run: a sweep in its own store, compared with the accepted night."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from cluster.machine import cores
from flows.nightly.night import code, opened_night
from flows.nightly.regression import CHANGED, FAILING, FIRST, compared, result_of
from flows.prepare.preparation import prepare_named
from flows.runtime.console import say
from flows.runtime.processes import locked
from flows.runtime.recording import Stage
from flows.sweeping.file import Sweep
from flows.sweeping.request import SweepRequest
from koco_stream.engine.result_file import machine
from koco_stream.io.paths import StorePath
from koco_stream.streams.manifest import prepared_names
from storage.catalogue.entries import CATALOGUE
from storage.generated.generators import prepare_synthetic
from storage.nights import accept, add_night, numbers_of, read_accepted, read_nights
from storage.store import open_store

Compute = Callable[[SweepRequest], dict[str, Any]]


@contextmanager
def nights_locked(store: str) -> Iterator[None]:
    """Hold the lock of the nightly runs on a store: they would disturb each other's times."""
    open_store(store)
    with locked(store, "nightly", f"another nightly run is under way on {store}; waiting for it"):
        yield


def run_night(
    request: SweepRequest,
    sweep: Sweep,
    compute: Compute,
    stage: Stage,
    planned: datetime | None = None,
) -> dict[str, Any]:
    """Recompute a sweep by `compute`, compare it with the accepted night; returns the summary.

    The night becomes the accepted one if it is the first of its sweep. The caller holds the lock of
    the nightly runs.
    """
    begun = time.monotonic()
    say(f"nightly {sweep.name}: {f'planned for {planned}' if planned else 'started by hand'}")
    stage("prepare", prepare_missing)(request.store, sweep)
    path, name = opened_night(request.store, sweep, planned)
    computed = compute(replace(request, store=str(path)))
    result, lines = stage("compare", compare)(request.store, sweep.name, path, name)
    say("\n  ".join([f"nightly {sweep.name}: {result}", *lines]))
    return {
        "sweep": sweep.name,
        "store": request.store,
        "night": name,
        "result": result,
        "details": lines,
        **{key: computed[key] for key in ("runs", "computed", "statuses", "report")},
        "seconds": round(time.monotonic() - begun, 2),
    }


def prepare_missing(store: str, sweep: Sweep) -> None:
    """Prepare the generated and catalogue datasets of a sweep that the store lacks.

    Other missing datasets are reported by the sweep itself.
    """
    for use in sweep.datasets:
        if use.given is not None:
            prepare_synthetic(store, use.table.name, use.given)
        elif use.name in CATALOGUE and use.name not in prepared_names(store):
            prepare_named(store, use.name, (), {}, cores())


def compare(store: str, sweep: str, path: StorePath, name: str) -> tuple[str, list[str]]:
    """Compare a night with the accepted one, and add its rows to the history.

    Returns the result, and sentences on what has changed and what to do about it.
    """
    numbers, history = numbers_of(path), read_nights(store, sweep).to_pylist()
    rows = compared(read_accepted(store, sweep), numbers)
    result = result_of(rows)
    common = {"night": name, "ended": datetime.now(UTC), "sweep": sweep, "result": result}
    common |= {"accepted": False, "code": code(), "host": machine()}
    add_night(store, sweep, [{**common, **row} for row in rows])
    if result == FIRST:
        accept(store, sweep, name, numbers)
    lines = [line for row in rows for line in row["what"]]
    codes = [row["code"] for row in history if row["accepted"] and row["night"] != name]
    if result == CHANGED and codes:
        lines.append(
            "code and versions are those of the accepted run: its numbers should be the same"
            if codes[-1] == code()
            else f"code or versions are not those of the accepted run: {codes[-1]} then, {code()}"
            " now"
        )
    if result in FAILING:
        lines.append(f"if this change is intended: koco nightly accept {sweep} --store {store}")
    return result, lines
