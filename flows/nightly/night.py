"""State of a nightly run, its own store inside the main store, and its rows in the history.

A sweep skips runs that its store already has, but a nightly run must recompute them all. It
therefore keeps its results, checkpoints and report in `nights/SWEEP`, reads the datasets of the
main store, and resumes there after an interruption. The next nightly run of the sweep starts with
an empty store in that folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from flows.nightly.regression import CHANGED, FAILING, FIRST, Change, Pair, Speed, pair_of
from flows.nightly.times import read_json
from flows.runtime.processes import locked
from flows.scores.means import known_of, means
from flows.sweeping.file import Sweep
from flows.tables.tables import grouped
from koco_stream.engine.result_file import machine
from koco_stream.errors import WrongInput
from koco_stream.io.files import canonical_json, content_hash, json_text, text_hash
from koco_stream.io.fingerprint import versions
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.streams.manifest import BORROWED
from storage.nights import accept, night_path, numbers_of, read_nights
from storage.store import existing_store, open_store

# the note on a nightly run: its start, its code, and its sweep file's hash
NOTE = "night.json"
TEXTS = ("night", "code", "file")  # texts in that note


def code() -> str:
    """The code and library versions that numbers may depend on, as canonical JSON."""
    return canonical_json(versions())


def opened_night(
    store: AnyPath, sweep: Sweep, planned: datetime | None = None
) -> tuple[StorePath, str]:
    """Open the store of a sweep's nightly run; returns its path, and the night's name.

    That is the planned time, or when a night by hand began. An interrupted night is resumed if it
    had the same code and sweep file. Otherwise the store is emptied.
    """
    night = night_path(store, sweep.name)
    note = read_json(night / NOTE, TEXTS)
    wanted = {"code": code(), "file": text_hash(sweep.text)}
    if not wanted.items() <= note.items() or has_ended(store, sweep.name, note["night"]):
        night.remove_tree()
        open_store(night)
        (night / BORROWED).write_text(f"{store_path(store)}\n")
        note = {"night": datetime.now(UTC).isoformat(timespec="milliseconds")}
    name = planned.isoformat() if planned else note["night"]
    (night / NOTE).write_text(json_text({"night": name, **wanted}) + "\n")
    return night, name


def has_ended(store: AnyPath, sweep: str, night: str) -> bool:
    """Whether the history has this night."""
    return night in read_nights(store, sweep).column("night").to_pylist()


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
    if not has_ended(store, sweep, note["night"]):
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


@dataclass(frozen=True)
class Night:
    """What a night came to.

    Attributes
    ----------
    store : str
        The store of the datasets and of the history.
    sweep, name : str
        Names of the sweep and of the night.
    path : StorePath
        The store with the results of the night.
    numbers : pa.Table
        Its numbers, with the columns of `storage.nights.NUMBERS`.
    changes : list of Change
        Numbers that differ from the accepted night.
    speeds : list of Speed
        Speed of each learner on each dataset.
    result : str
        Overall result: first, same numbers, changed numbers, slower or faster.
    """

    store: str
    sweep: str
    name: str
    path: StorePath
    numbers: pa.Table
    changes: list[Change]
    speeds: list[Speed]
    result: str


def history_rows(night: Night) -> list[dict[str, Any]]:
    """Rows that a night adds to the table `history`: one per dataset and learner."""
    common = {
        "night": night.name,
        "ended": datetime.now(UTC),
        "sweep": night.sweep,
        "result": night.result,
        "accepted": False,
        "code": code(),
        "host": machine(),
    }
    speeds = {(speed.dataset, speed.learner): speed for speed in night.speeds}
    return [
        {
            **common,
            **numbers_columns(night, pair, rows),
            "ratio": speeds[pair].ratio if pair in speeds else None,
            "speed": speeds[pair].verdict if pair in speeds else None,
            "scan_seconds": sum(row["seconds"] or 0.0 for row in rows),
        }
        for pair, rows in grouped(night.numbers.to_pylist(), pair_of).items()
    ]


def numbers_columns(night: Night, pair: Pair, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Columns of a history row on the numbers of one learner on one dataset."""
    found = [change for change in night.changes if (change.dataset, change.learner) == pair]
    other = [change for change in found if change.what != "new"]
    losses = [row["mean_loss"] for row in rows if row["mean_loss"] is not None]
    verdicts = {"first": night.result == FIRST, "changed": other, "new": found, "same": True}
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

    They name changed numbers and speeds, and differences of the code.
    """
    lines = [str(change) for change in night.changes]
    lines += [str(speed) for speed in night.speeds if speed.verdict != "same"]
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
            f"if this change is intended: koco nightly accept {night.sweep} --store {night.store}"
        )
    return lines
