"""The schedules file (TOML): a [[schedule]] table for each nightly sweep, checked key by key."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from cluster.clusters import LOCAL, cluster_named
from cluster.machine import cores
from cluster.site import Clock, clock_seconds
from flows.nightly.times import planned_times
from flows.sweep.file import read_sweep
from flows.sweep.toml_file import TomlFile
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.files import text_hash
from koco_stream.io.paths import store_path
from storage.store import check_store


class ScheduleTable(BaseModel):
    """A [[schedule]] table. Paths are relative to the file's folder."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    cron: str
    timezone: str = "UTC"
    sweep: str
    store: str | None = None
    cluster: str = LOCAL
    workers: NonNegativeInt | None = None
    certificates: str | None = None
    time_limit: Clock | None = None


class SchedulesFile(BaseModel):
    """The content of a schedules file."""

    model_config = ConfigDict(extra="forbid", strict=True)
    schedule: list[ScheduleTable] = Field(min_length=1)


@dataclass(frozen=True)
class Schedule:
    """Schedule of a nightly sweep: its cron expression, store, cluster and time limit."""

    name: str
    cron: str
    timezone: str
    sweep: Path
    store: str
    cluster: str
    workers: int
    certificates: str | None
    seconds: float | None
    where: str  # location in the file, for messages

    @property
    def deployment(self) -> str:
        """Name of the Prefect deployment, distinct from those of other stores' schedules."""
        return f"{self.name}-{text_hash(self.store)[:6]}"

    def parameters(self) -> dict[str, Any]:
        """Parameters of the nightly flow."""
        given = ("store", "cluster", "workers", "certificates", "seconds")
        return {
            "sweep_file": str(self.sweep),
            **{name: getattr(self, name) for name in given},
            "schedule": self.name,
        }


def read_schedules(path: Path, store: str) -> list[Schedule]:
    """Read and check a schedules file; `store` is the default for schedules that name none.

    Raises `WrongInput` that names the file, the line or key, and the remedy. Sweep files, clusters
    and stores are checked too.
    """
    file = TomlFile(
        path, "schedules", "flows/schedules.toml is an example", {"schedule": ScheduleTable}
    )
    found: dict[str, Schedule] = {}
    for number, table in enumerate(file.as_model(SchedulesFile).schedule):
        with file.blaming("schedule", number, "name"):
            if table.name in found:
                raise WrongInput(f"two schedules are called {table.name!r}; rename one")
        found[table.name] = _schedule(file, number, table, store)
    return list(found.values())


def _schedule(file: TomlFile, number: int, table: ScheduleTable, store: str) -> Schedule:
    """Make a schedule from its table, and check the sweep, cluster and store that it names."""
    with file.blaming("schedule", number, "timezone"):
        if table.timezone not in available_timezones():
            raise WrongInput(
                f"no time zone is called {table.timezone!r}{_nearest_zone(table.timezone)}"
            )
    folder = file.path.absolute().parent
    sweep = folder / Path(table.sweep).expanduser()
    if table.store is not None:
        local = "://" not in table.store
        store = str(folder / Path(table.store).expanduser()) if local else table.store
    workers = cores() if table.workers is None else table.workers
    with file.blaming("schedule", number, "sweep"):
        read_sweep(sweep)
    with file.blaming("schedule", number, "store"):
        check_store(store)
    with file.blaming("schedule", number, "cluster"):
        cluster_named(table.cluster, workers, 0, table.certificates)
    return Schedule(
        table.name,
        table.cron,
        table.timezone,
        sweep,
        str(store_path(store)),
        table.cluster,
        workers,
        table.certificates,
        float(clock_seconds(table.time_limit)) if table.time_limit else None,
        file.at("schedule", number, "cron"),
    )


def check_crons(schedules: list[Schedule]) -> None:
    """Raise `WrongInput` for a cron expression that Prefect does not accept. Imports prefect."""
    for schedule in schedules:
        try:
            planned_times(schedule.cron, schedule.timezone, datetime.now(UTC))
        except ValueError:  # raised too for a time that never comes, such as the 30th of February
            raise WrongInput(
                f"{schedule.where}: {schedule.cron!r} is no cron expression; five fields (minute,"
                ' hour, day, month, day of the week), for example "0 2 * * *" for two o\'clock'
                " each night"
            ) from None


def _nearest_zone(name: str) -> str:
    suggestion = nearest(name, sorted(available_timezones()))
    return suggestion if "did you mean" in suggestion else "; names are like UTC or Europe/Paris"
