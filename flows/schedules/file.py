"""The schedules file (TOML): a [[schedule]] table for each nightly sweep, checked key by key."""

import asyncio
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from cluster.clusters import cluster_named
from cluster.machine import cores
from cluster.site import LOCAL, Clock, clock_seconds
from flows.sweeping.file import read_sweep
from flows.sweeping.toml_file import Name, TomlFile
from koco_stream.errors import WrongInput, similar
from koco_stream.io.files import text_hash
from koco_stream.io.paths import store_path
from storage.store import check_store


class Schedule(BaseModel):
    """A [[schedule]] table. Its paths, relative to the file's folder, are absolute once read."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Name
    cron: str
    timezone: str = "UTC"
    sweep: Path = Field(strict=False)
    store: str = ""
    cluster: str = LOCAL
    workers: NonNegativeInt = Field(default_factory=cores)
    certificates: str | None = None
    time_limit: Clock | None = None

    @property
    def deployment(self) -> str:
        """Name of the Prefect deployment, distinct from those of other stores' schedules."""
        return f"{self.name}-{text_hash(self.store)[:6]}"

    def parameters(self) -> dict[str, Any]:
        """Parameters of the nightly flow."""
        return {
            "sweep_file": str(self.sweep),
            **self.model_dump(include={"store", "cluster", "workers", "certificates"}),
            "seconds": float(clock_seconds(self.time_limit)) if self.time_limit else None,
        }


class SchedulesFile(BaseModel):
    """The content of a schedules file."""

    model_config = ConfigDict(extra="forbid", strict=True)
    schedule: list[Schedule] = Field(min_length=1)


def read_schedules(path: Path, store: str) -> list[Schedule]:
    """The schedules of a schedules file, checked; `store` is for those that name none.

    Raises `WrongInput` that names the file, the line or key, and the remedy. Sweep files, clusters
    and stores are checked too. Imports prefect, which checks the cron expressions.
    """
    file = TomlFile(path, "schedules", "flows/schedules.toml is an example", {"schedule": Schedule})
    schedules = file.as_model(SchedulesFile).schedule
    nights: set[tuple[str, str]] = set()
    for number, schedule in enumerate(schedules):
        with file.blaming("schedule", number, "name"):
            if schedule.name in [other.name for other in schedules[:number]]:
                raise WrongInput(f"two schedules are called {schedule.name!r}; rename one")
        night = _check(file, number, schedule, store), schedule.store
        with file.blaming("schedule", number, "sweep"):
            if night in nights:
                raise WrongInput(f"two schedules are for the sweep {night[0]!r} in {night[1]}")
        nights.add(night)
    return schedules


def _check(file: TomlFile, number: int, schedule: Schedule, store: str) -> str:
    """Check what a schedule names, and make its paths absolute; returns the sweep's name."""
    from prefect.server.schemas.schedules import CronSchedule  # whose import takes seconds

    folder = file.path.absolute().parent
    with file.blaming("schedule", number, "timezone"):
        zones = sorted(available_timezones())
        if schedule.timezone not in zones:
            close = similar(schedule.timezone, zones, 1)
            hint = f"did you mean {close[0]!r}?" if close else "names are like UTC or Europe/Paris"
            raise WrongInput(f"no time zone is called {schedule.timezone!r}; {hint}")
    with file.blaming("schedule", number, "sweep"):
        schedule.sweep = folder / schedule.sweep.expanduser()
        sweep = read_sweep(schedule.sweep)
    with file.blaming("schedule", number, "store"):
        local = schedule.store and "://" not in schedule.store
        given = folder / Path(schedule.store).expanduser() if local else schedule.store or store
        check_store(given)
        schedule.store = str(store_path(given))
    with file.blaming("schedule", number, "cluster"):
        cluster_named(schedule.cluster, schedule.workers, 0, schedule.certificates)
    with file.blaming("schedule", number, "cron"):
        fields = schedule.cron.split()
        try:
            if len(fields) != 5 or any(field[0] in "rR" for field in fields):  # R: at random
                raise ValueError
            clock = CronSchedule(cron=schedule.cron, timezone=schedule.timezone)
            asyncio.run(clock.get_dates(1))
        except ValueError:  # raised too for a time that never comes, such as the 30th of February
            raise WrongInput(
                f"{schedule.cron!r} is not a cron expression; give five fields (minute, hour,"
                ' day, month, day of the week), for example "0 2 * * *" for two o\'clock each night'
            ) from None
    return sweep.name
