"""The path of a nightly run: a store inside the store, with the datasets of the one it is in and
results of its own.

A sweep does not compute what its store has; a nightly run must. It therefore has results,
checkpoints and a report of its own, in `nights/SWEEP`, and goes on there after it was killed. The
next night begins with an empty one: there is never more than one a sweep.
"""

import json
from datetime import UTC, datetime
from typing import Any

from flows.runtime.locks import locked
from flows.sweep.file import Sweep
from koco_stream.errors import WrongInput
from koco_stream.io.files import canonical_json, text_hash
from koco_stream.io.fingerprint import versions
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.streams.manifest import BORROWED
from storage.nights import accept, numbers_of
from storage.store import existing_store, open_store

NOTE = "night.json"


def code() -> str:
    """The code and the versions that numbers may depend on, as canonical JSON."""
    return canonical_json(versions())


def night_path(store: AnyPath, sweep: str) -> StorePath:
    """Where the last nightly run of a sweep is."""
    return store_path(store) / "nights" / sweep


def read_note(night: StorePath) -> dict[str, Any]:
    """What the night's store says of it: when it was begun, by which code, of which sweep file, and
    whether it has ended. Empty if nothing is there.
    """
    try:
        return json.loads((night / NOTE).read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}


def opened_night(store: AnyPath, sweep: Sweep) -> tuple[StorePath, str]:
    """The path for tonight, and when the night was begun: the one that was cut, if it was of this
    code and this sweep file, else an empty one.
    """
    night = night_path(store, sweep.name)
    note = read_note(night)
    wanted = {"code": code(), "file": text_hash(sweep.text)}
    if note and not note["ended"] and {key: note[key] for key in wanted} == wanted:
        return night, note["night"]
    night.remove_tree()
    open_store(night)
    (night / BORROWED).write_text(f"{store_path(store)}\n")
    note = {"night": datetime.now(UTC).isoformat(timespec="milliseconds"), **wanted, "ended": False}
    (night / NOTE).write_text(json.dumps(note) + "\n")
    return night, note["night"]


def end_night(night: StorePath) -> None:
    """Note that the night was compared: the next one begins anew."""
    (night / NOTE).write_text(json.dumps({**read_note(night), "ended": True}) + "\n")


def ended_night(store: AnyPath, sweep: str) -> tuple[StorePath, str]:
    """The last night, and when it was begun. Raises `WrongInput` if there is none, or if it has not
    ended.
    """
    night = night_path(store, sweep)
    note = read_note(night)
    if not note:
        raise WrongInput(
            f"{store_path(store)} has no nightly run of a sweep {sweep!r}; make one with"
            " koco nightly"
        )
    if not note["ended"]:
        raise WrongInput(
            f"the nightly run of {sweep!r} that was begun at {note['night']} has not ended; wait"
            " for it, or start it again"
        )
    return night, note["night"]


def accept_last(store: AnyPath, sweep: str) -> str:
    """Accept the last nightly run of a sweep; returns when it was begun. Raises `WrongInput` if
    there is none, or if it has not ended.
    """
    existing_store(store)
    ended_night(store, sweep)
    with locked(store, "nightly", f"a nightly run is under way on {store}; waiting for it"):
        night, name = ended_night(store, sweep)
        accept(store, sweep, name, numbers_of(night))
    return name
