"""State of a nightly run, its own store inside the main store, and its rows in the history.

A sweep skips runs that its store already has, but a nightly run must recompute them all. It
therefore keeps its results, checkpoints and report in `nights/SWEEP`, reads the datasets of the
main store, and resumes there after an interruption. The next nightly run of the sweep starts with
an empty store in that folder.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flows.nightly.regression import (
    CHANGED,
    FAILING,
    FASTER,
    SLOWER,
    UNCLEAR,
    Change,
    Pair,
    Speed,
    pair_of,
)
from flows.nightly.times import read_json
from flows.runtime.processes import locked
from flows.scores.means import known_of, means
from flows.sweeping.file import Sweep
from flows.sweeping.request import SweepRequest
from flows.tables.tables import grouped
from koco_stream.engine.calibration import VERSION
from koco_stream.engine.result_file import machine
from koco_stream.errors import WrongInput
from koco_stream.io.files import canonical_json, content_hash, json_text, text_hash
from koco_stream.io.fingerprint import versions
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.streams.manifest import BORROWED
from storage.nights import accept, night_path, numbers_of
from storage.results import read_runs
from storage.store import existing_store, open_store

if TYPE_CHECKING:
    from prefect.states import State

# the note on a nightly run: its start, its code, its sweep file's hash, whether it has ended
NOTE = "night.json"
TEXTS = ("night", "code", "file")  # texts in that note
# columns of the history on a speed, with the attribute of `Speed`; None if it was not timed
SPEED_COLUMNS = {
    "probe": "probe",
    "probe_rows": "rows",
    "ratio": "ratio",
    "expected": "expected",
    "speed": "verdict",
}


def code() -> str:
    """The code and library versions that numbers may depend on, as canonical JSON."""
    return canonical_json(versions())


def opened_night(store: AnyPath, sweep: Sweep) -> tuple[StorePath, str]:
    """Open the store of a sweep's nightly run; returns its path and the start time of the run.

    An interrupted run is resumed if it had the same code and sweep file. Otherwise the store is
    emptied.
    """
    night = night_path(store, sweep.name)
    note = read_json(night / NOTE, TEXTS)
    wanted = {"code": code(), "file": text_hash(sweep.text)}
    if note and not note.get("ended") and {key: note[key] for key in wanted} == wanted:
        return night, note["night"]
    night.remove_tree()
    open_store(night)
    (night / BORROWED).write_text(f"{store_path(store)}\n")
    note = {"night": datetime.now(UTC).isoformat(timespec="milliseconds"), **wanted, "ended": False}
    (night / NOTE).write_text(json_text(note) + "\n")
    return night, note["night"]


def end_night(night: StorePath) -> None:
    """Mark a nightly run as ended, so that the next one starts with an empty store."""
    (night / NOTE).write_text(json_text({**read_json(night / NOTE, TEXTS), "ended": True}) + "\n")


def ended_night(store: AnyPath, sweep: str) -> tuple[StorePath, str]:
    """Path of a sweep's latest nightly run, and the time when it started.

    Raises `WrongInput` if there is none, or if it has not ended.
    """
    night = night_path(store, sweep)
    note = read_json(night / NOTE, TEXTS)
    if not note:
        raise WrongInput(
            f"{store_path(store)} has no nightly run of a sweep {sweep!r}; start one with koco"
            " nightly"
        )
    if not note.get("ended"):
        raise WrongInput(
            f"the nightly run of {sweep!r} that began at {note['night']} has not ended; wait"
            " for it, or start it again"
        )
    return night, note["night"]


def accept_last(store: AnyPath, sweep: str) -> str:
    """Make a sweep's latest nightly run the accepted one; returns the time when it started.

    Raises `WrongInput` if there is none, or if it has not ended.
    """
    existing_store(store)
    ended_night(store, sweep)
    with locked(store, "nightly", f"a nightly run is under way on {store}; waiting for it"):
        night, name = ended_night(store, sweep)
        accept(store, sweep, name, numbers_of(night))
    return name


class Night:
    """A nightly run: its settings, and the results that its tasks add.

    It is not a dataclass on purpose: see `flows.sweeping.checks.CheckedSweep`.

    Parameters
    ----------
    sweep : Sweep
        The sweep to recompute.
    request : SweepRequest
        The store of the datasets, the cluster, and how to run.
    accepting : bool
        Whether to accept the new numbers and speeds, whatever the comparison finds.
    seconds : float or None
        Time limit of the sweep.
    schedule : str or None
        Name of the schedule that the run belongs to.
    planned : datetime or None
        Time for which the schedule planned it.

    Attributes
    ----------
    path : StorePath
        The store with the results of this run.
    name : str
        Start time in ISO format, which identifies the run.
    summary : dict
        Summary of the sweep.
    changes : list of Change
        Numbers that differ from the accepted run.
    speeds : list of Speed
        Speed of each learner on each dataset.
    result : str
        Overall result: first, same numbers, changed numbers, slower or faster.
    tasks : list of prefect.states.State
        Final states of its tasks.
    """

    def __init__(
        self,
        sweep: Sweep,
        request: SweepRequest,
        accepting: bool = False,
        seconds: float | None = None,
        schedule: str | None = None,
        planned: datetime | None = None,
    ) -> None:
        self.sweep, self.request, self.store = sweep, request, request.store
        self.accepting, self.seconds = accepting, seconds
        self.schedule, self.planned = schedule, planned
        self.path, self.name = night_path(self.store, sweep.name), ""
        self.summary: dict[str, Any] = {}
        self.changes: list[Change] = []
        self.speeds: list[Speed] = []
        self.result = ""
        self.tasks: list[State[Any]] = []


def history_rows(night: Night, numbers: pa.Table, is_first: bool) -> list[dict[str, Any]]:
    """Rows that a nightly run adds to the table `history`: one per dataset and learner.

    `numbers` is the table of this run's numbers; `is_first` says that no run was accepted before.
    """
    common = {
        "night": night.name,
        "ended": datetime.now(UTC),
        "planned": night.planned,
        "schedule": night.schedule,
        "sweep": night.sweep.name,
        "result": night.result,
        "accepted": False,
        "code": code(),
        "calibration": VERSION,
        "host": machine(),
    }
    scans = grouped(
        read_runs(night.path, ("run_id", "status", "dataset", "learner", "seconds")).to_pylist(),
        pair_of,
    )
    speeds = {(speed.dataset, speed.learner): speed for speed in night.speeds}
    return [
        {
            **common,
            **numbers_columns(night, pair, rows, is_first),
            **{
                column: getattr(speeds.get(pair), name, None)
                for column, name in SPEED_COLUMNS.items()
            },
            "scan_seconds": sum(row["seconds"] for row in scans[pair]) if pair in scans else None,
        }
        for pair, rows in grouped(numbers.to_pylist(), pair_of).items()
    ]


def numbers_columns(
    night: Night, pair: Pair, rows: Sequence[dict[str, Any]], is_first: bool
) -> dict[str, Any]:
    """Columns of a history row on the numbers of one learner on one dataset."""
    found = [change for change in night.changes if (change.dataset, change.learner) == pair]
    other = [change for change in found if change.what != "new"]
    losses = [row["mean_loss"] for row in rows if row["mean_loss"] is not None]
    verdicts = {"first": is_first, "changed": other, "new": found, "same": True}
    return {
        "dataset": pair[0],
        "learner": pair[1],
        "runs": len(rows),
        "digest": content_hash([row["digest"] for row in rows]),
        "mean_loss": known_of(means([losses]))[0],
        "changed": sum(change.runs for change in other),
        "largest_change": max(
            (change.largest for change in other if change.largest is not None), default=None
        ),
        "numbers": next(verdict for verdict, holds in verdicts.items() if holds),
    }


def lines_of(night: Night, history: Sequence[dict[str, Any]]) -> list[str]:
    """Sentences for the user on what a nightly run found, and what to do about it.

    They name changed numbers, changed or unclear speeds, and differences of the code.
    """
    lines = [str(change) for change in night.changes]
    lines += [str(speed) for speed in night.speeds if speed.verdict in (SLOWER, FASTER, UNCLEAR)]
    accepted = [row["code"] for row in history if row["accepted"] and row["night"] != night.name]
    if night.result == CHANGED and accepted:
        lines.append(
            "code, versions and sweep are those of the accepted run: its numbers should be the same"
            if accepted[-1] == code()
            else f"code or versions are not those of the accepted run: {accepted[-1]} then,"
            f" {code()} now"
        )
    if night.result in FAILING:
        lines.append(
            f"if this change is intended: koco nightly accept {night.sweep.name}"
            f" --store {night.store}"
        )
    return lines
