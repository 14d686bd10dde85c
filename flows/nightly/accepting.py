"""Accepting a nightly run afterwards."""

from __future__ import annotations

from flows.alone import alone
from flows.nightly.night import ended_night
from koco_stream.io.paths import Where
from storage.history import accept, numbers_of
from storage.store import existing_store


def accept_last(store: Where, sweep: str) -> str:
    """Accept the last nightly run of a sweep; returns when it was begun. Raises `WrongInput` if
    there is none, or if it has not ended.
    """
    existing_store(store)
    ended_night(store, sweep)
    with alone(store, "nightly", f"a nightly run is under way on {store}; waiting for it"):
        night, name = ended_night(store, sweep)
        accept(store, sweep, name, numbers_of(night))
    return name
