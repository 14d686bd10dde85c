"""The status of a sweep in the store, which `koco list` reads."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime

from pydantic import TypeAdapter

from flows.runtime.processes import locked, start_of
from flows.sweeping.watching import Tally, Watcher
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path

SILENT_SECONDS = 60.0  # without updates for so long, a sweep on another machine counts as killed
# Lock of a store that a sweep holds while it says that it runs, and a removal as long as it lasts.
CLAIM = "sweeps"


@dataclass(frozen=True)
class Status:
    """Progress of a sweep, as stored for `koco list`.

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
    host: str = ""
    process: int = 0
    started: int = 0  # when that process was, as `start_of` says
    begun: str = ""
    updated: str = ""
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
        return replace(status, state="killed", dashboard=None, seconds_left=None)
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
                f" {status.host}); wait until it has ended (koco list sweeps), or stop it"
            )


class StatusFile(Watcher):
    """Writes the status of a sweep into its store, once a second and at the end.

    Its begin raises `WrongInput` if another process runs the sweep.
    """

    def __init__(self, store: AnyPath) -> None:
        self.store, self.begun = store, now()

    def begin(self, tally: Tally) -> None:
        """Say that the sweep runs, unless another process runs it."""
        with locked(self.store, CLAIM, "waiting for koco store remove"):
            refuse_running(self.store, tally.sweep)
            self._write(tally, "running")

    def second(self, tally: Tally) -> None:
        """Write how far it is."""
        with suppress(OSError):  # a full disk is reported when results are written
            self._write(tally, "running")

    def end(self, tally: Tally, error: BaseException | None) -> None:
        """Write how it has ended: done, stopped (by Ctrl-C or SIGTERM), or by an error."""
        said = str(error) if isinstance(error, Exception) else None
        state = "stopped" if said is None else "ended by an error"
        # on a full disk, the error that ended the sweep is raised, not that of the status
        with nullcontext() if error is None else suppress(OSError):
            self._write(tally, "done" if error is None else state, said)

    def _write(self, tally: Tally, state: str, error: str | None = None) -> None:
        running, me = state == "running", os.getpid()
        status = Status(
            tally.sweep,
            state,
            *(tally.runs, tally.done, tally.diverged, tally.failed),
            rounds_per_second=tally.pace(),
            seconds_left=tally.seconds_left if running else None,
            dashboard=tally.dashboard if running else None,
            host=socket.gethostname(),
            process=me,
            started=start_of(me) or 0,
            begun=self.begun,
            updated=now(),
            error=error,
        )
        file = store_path(self.store) / "status" / f"{tally.sweep}.json"
        file.write_text(json_text(asdict(status)) + "\n")


def now() -> str:
    """The current time in the format of `Status`."""
    return datetime.now(UTC).isoformat(timespec="seconds")
