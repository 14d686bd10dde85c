"""The schedules file: TOML, a [[schedule]] table for each nightly sweep, checked key by key."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from cluster.clusters import LOCAL, cluster_named
from cluster.machine import cores
from cluster.site import Clock, clock_seconds
from flows.sweep.file import read_sweep
from flows.sweep.keys import explained, spot
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.files import text_hash
from koco_stream.io.paths import store_path
from storage.store import check_store

EXAMPLE = "flows/schedules.toml is an example"


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
    """A schedules file as written."""

    model_config = ConfigDict(extra="forbid", strict=True)
    schedule: list[ScheduleTable] = Field(min_length=1)


@dataclass(frozen=True)
class Schedule:
    """When which sweep is run anew, where, and for how long at most."""

    name: str
    cron: str
    timezone: str
    sweep: Path
    store: str
    cluster: str
    workers: int
    certificates: str | None
    seconds: float | None
    where: str  # in the file, for messages

    @property
    def deployment(self) -> str:
        """The name of its deployment: others may use the same server, with schedules of the same
        name.
        """
        return f"{self.name}-{text_hash(self.store)[:6]}"

    def parameters(self) -> dict[str, Any]:
        """What its nightly flow is given."""
        return {
            "sweep_file": str(self.sweep),
            "store": self.store,
            "cluster": self.cluster,
            "workers": self.workers,
            "certificates": self.certificates,
            "seconds": self.seconds,
            "schedule": self.name,
        }


def read_schedules(path: Path, store: str) -> list[Schedule]:
    """Read and check a schedules file; `store` is for schedules that name none. Raises `WrongInput`
    naming the file, the line or key, and the remedy: also for a sweep file, a cluster or a store
    that cannot be used.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except FileNotFoundError:
        raise WrongInput(f"{path}: no such schedules file; {EXAMPLE}") from None
    except OSError as error:
        raise WrongInput(f"{path}: {error}") from None
    except ValueError as error:  # also what is not UTF-8
        raise WrongInput(f"{path}: {error}; the file is TOML") from None
    try:
        tables = SchedulesFile.model_validate(content).schedule
    except ValidationError as error:
        raise WrongInput(
            explained(path, text, error, SchedulesFile, {"schedule": ScheduleTable}, EXAMPLE)
        ) from None
    found: list[Schedule] = []
    for number, table in enumerate(tables):
        if table.name in [schedule.name for schedule in found]:
            raise WrongInput(
                f"{spot(path, text, 'schedule', number, 'name')}: two schedules are called"
                f" {table.name!r}; rename one"
            )
        found.append(_schedule(path, text, number, table, store))
    return found


def _schedule(path: Path, text: str, number: int, table: ScheduleTable, store: str) -> Schedule:
    """One schedule, with all that it names looked at."""

    def wrong(key: str, reason: object) -> WrongInput:
        return WrongInput(f"{spot(path, text, 'schedule', number, key)}: {reason}")

    if table.timezone not in available_timezones():
        raise wrong(
            "timezone", f"no time zone is called {table.timezone!r}{_nearest_zone(table.timezone)}"
        )
    folder = path.absolute().parent
    sweep = folder / Path(table.sweep).expanduser()
    if table.store is not None:
        local = "://" not in table.store
        store = str(folder / Path(table.store).expanduser()) if local else table.store
    workers = cores() if table.workers is None else table.workers
    try:
        key = "sweep"
        read_sweep(sweep)
        key = "store"
        check_store(store)
        key = "cluster"
        cluster_named(table.cluster, workers, 0, table.certificates)
    except WrongInput as error:
        raise wrong(key, error) from None
    seconds = float(clock_seconds(table.time_limit)) if table.time_limit else None
    return Schedule(
        table.name,
        table.cron,
        table.timezone,
        sweep,
        str(store_path(store)),
        table.cluster,
        workers,
        table.certificates,
        seconds,
        spot(path, text, "schedule", number, "cron"),
    )


def check_crons(schedules: list[Schedule]) -> None:
    """Refuse what Prefect does not take for a cron expression. Imports prefect. Raises
    `WrongInput`.
    """
    from prefect.server.schemas.schedules import CronSchedule

    for schedule in schedules:
        try:
            next(
                iter(
                    CronSchedule(
                        cron=schedule.cron, timezone=schedule.timezone
                    )._get_dates_generator(n=1)
                )
            )
        except ValueError:  # also of one that names no time, such as the 30th of February
            raise WrongInput(
                f"{schedule.where}: {schedule.cron!r} is no cron expression; five fields (minute,"
                ' hour, day, month, day of the week), for example "0 2 * * *" for two o\'clock'
                " each night"
            ) from None


def _nearest_zone(name: str) -> str:
    said = nearest(name, sorted(available_timezones()))
    return said if "did you mean" in said else "; names are like UTC or Europe/Paris"
