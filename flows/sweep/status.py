"""What a sweep says of itself while it runs, in the store, for `koco status` in another shell."""

import json
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime

from psutil import pid_exists

from koco_stream.io.paths import AnyPath, store_path

SILENT_SECONDS = 60.0  # a sweep on another machine that said nothing for so long is taken for dead


@dataclass(frozen=True)
class Status:
    """A sweep's progress. `state` is running, done, stopped (by Ctrl-C), ended by an error, or
    killed: it said running and is no more.
    """

    sweep: str
    state: str
    runs: int
    done: int
    diverged: int
    failed: int
    rounds_per_second: float
    seconds_left: float | None
    dashboard: str | None
    host: str
    process: int
    begun: str
    updated: str
    error: str | None = None


COLUMNS = tuple(field.name for field in fields(Status))


def tell(store: AnyPath, status: Status) -> None:
    """Write the sweep's status into the store."""
    (store_path(store) / "status" / f"{status.sweep}.json").write_text(
        json.dumps(asdict(status)) + "\n"
    )


def statuses(store: AnyPath) -> Iterator[Status]:
    """What each sweep of the store said last."""
    for file in (store_path(store) / "status").files(".json"):
        status = Status(**json.loads(file.read_text()))
        yield (
            replace(status, state="killed", dashboard=None, seconds_left=None)
            if status.state == "running" and is_dead(status)
            else status
        )


def is_dead(status: Status) -> bool:
    """Whether the process that wrote this is gone."""
    if status.host == socket.gethostname():
        return not pid_exists(status.process)
    return (
        datetime.now(UTC) - datetime.fromisoformat(status.updated)
    ).total_seconds() > SILENT_SECONDS
