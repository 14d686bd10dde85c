"""The store of a sweep's nightly run inside the main store, and the acceptance of a night.

A sweep skips runs that its store already has, but a nightly run must recompute them all. It
therefore keeps its results, checkpoints and report in `nights/SWEEP`, reads the datasets of the
main store, and resumes there after an interruption. The next nightly run of the sweep starts with
an empty store in that folder.
"""

from datetime import UTC, datetime

from flows.nightly.times import read_json
from flows.runtime.processes import locked
from flows.sweeping.file import Sweep
from koco_stream.errors import WrongInput
from koco_stream.io.files import canonical_json, json_text, text_hash
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
