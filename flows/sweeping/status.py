"""The status of a sweep in the store, which `koco status` reads."""

import os
import socket
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime

from pydantic import TypeAdapter

from flows.runtime.processes import locked, start_of
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path

SILENT_SECONDS = 60.0  # without updates for so long, a sweep on another machine counts as killed
# Lock of a store that a sweep holds while it says that it runs, and a removal as long as it lasts.
CLAIM = "sweeps"


def now() -> str:
    """The current time in the format of `Status`."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass
class Status:
    """Progress of a sweep, as stored for `koco status`; by default that of this process.

    `state` is running, done, stopped (by Ctrl-C), ended by an error, or killed. A killed sweep is
    stored as running, but its process is gone.
    """

    sweep: str
    state: str = "running"
    runs: int = 0
    done: int = 0
    diverged: int = 0
    failed: int = 0
    rounds_per_second: float = 0.0
    seconds_left: float | None = None
    dashboard: str | None = None
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    # when that process was, as `start_of` says
    started: int = field(default_factory=lambda: start_of(os.getpid()) or 0)
    begun: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    error: str | None = None


COLUMNS = tuple(field.name for field in fields(Status))


def statuses(store: AnyPath, sweep: str | None = None) -> Iterator[Status]:
    """Yield the last status of each sweep in the store, or of the one of this name.

    Raises `WrongInput` for a damaged file.
    """
    for file in (store_path(store) / "status").files(".json"):
        if sweep is None or file.name == f"{sweep}.json":
            with suppress(FileNotFoundError):  # removed meanwhile
                yield _status_in(file)


def _status_in(file: StorePath) -> Status:
    try:
        status = TypeAdapter(Status).validate_json(file.read_bytes())
        killed = status.state == "running" and is_dead(status)
    except (ValueError, TypeError) as error:
        raise WrongInput(
            f"{file} is damaged ({' '.join(str(error).split())[:200]}); remove it: it says only how"
            " far a sweep is"
        ) from None
    if killed:
        status.state, status.dashboard, status.seconds_left = "killed", None, None
    return status


def is_dead(status: Status) -> bool:
    """Whether the process that wrote a status is gone.

    A process on another machine counts as gone if its last update is more than `SILENT_SECONDS`
    away, into the past or, by a clock that was wrong, into the future.
    """
    if status.host == socket.gethostname():
        return start_of(status.process) != status.started
    silent = datetime.now(UTC) - datetime.fromisoformat(status.updated)
    return abs(silent.total_seconds()) > SILENT_SECONDS


def refuse_running(store: AnyPath, sweep: str | None = None) -> None:
    """Raise `WrongInput` if a sweep is running, or the one of this name in another process."""
    me = socket.gethostname(), os.getpid()
    for status in statuses(store, sweep):
        mine = sweep is not None and (status.host, status.process) == me
        if status.state == "running" and not mine:
            raise WrongInput(
                f"the sweep {status.sweep} is running on {store} (process {status.process} of"
                f" {status.host}); wait until it has ended (koco status), or stop it"
            )


def claim(store: AnyPath, status: Status) -> None:
    """Say that a sweep runs. Raises `WrongInput` if another process runs it."""
    with locked(store, CLAIM, "waiting for koco remove"):
        refuse_running(store, status.sweep)
        write_status(store, status)


def write_status(store: AnyPath, status: Status) -> None:
    """Write the status of a sweep into its store.

    A full disk is reported when results are written, or by the error that has ended the sweep.
    """
    file = store_path(store) / "status" / f"{status.sweep}.json"
    with nullcontext() if status.state == "done" else suppress(OSError):
        file.write_text(json_text(asdict(status)) + "\n")
