"""The planned times of a schedule, by Prefect's own clock, and which of them the store has.

A night is named by its planned time. Of those that have passed, only the last one is due.
"""

import asyncio
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pydantic import AwareDatetime, TypeAdapter

from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path
from storage.nights import read_nights

Kind = TypeVar("Kind")
MOST = 1000  # planned times that one call to Prefect returns, as many as it can
AROUND = timedelta(hours=3)  # longer than what the clock skips or repeats


def planned_times(cron: str, timezone: str, start: datetime, end: datetime) -> list[datetime]:
    """The first planned times of a cron expression after `start`, up to `end`, as Prefect has them.

    Raises `ValueError` if it has not five fields, or draws (R) a time, if Prefect does not accept
    it, or if it names no time for years.
    """
    fields = cron.split()
    if len(fields) != 5 or any(field[0] in "rR" for field in fields):
        raise ValueError(cron)
    from prefect.server.schemas.schedules import CronSchedule

    # Between times in or beside an hour that the clock skips or repeats, Prefect gives other ones.
    schedule = CronSchedule(cron=cron, timezone=timezone)
    dates = asyncio.run(schedule.get_dates(MOST, start - AROUND, end + AROUND))
    planned = (datetime.fromtimestamp(date.timestamp(), UTC) for date in dates)
    return [time for time in planned if start < time <= end]


@dataclass(frozen=True)
class Rule:
    """A schedule, and since when its planned times count."""

    cron: str
    timezone: str
    since: AwareDatetime


class Times:
    """Which planned times of a sweep's schedule are done: all up to `done`.

    That is the last night that the store has, or when the schedule was first served. Raises
    `WrongInput` if a record in the store is damaged.
    """

    def __init__(self, store: AnyPath, sweep: str) -> None:
        self.file = store_path(store) / "schedules" / f"{sweep}.json"
        self.rule = read_record(self.file, Rule)
        nights = map(datetime.fromisoformat, read_nights(store, sweep).column("night").to_pylist())
        since = self.rule.since if self.rule else datetime.fromtimestamp(0, UTC)
        self.done = max([since, *nights])

    def begin(self, cron: str, timezone: str, now: datetime) -> None:
        """Let a schedule count from now on if it is new or has changed, or the clock was ahead."""
        known = self.rule and (self.rule.cron, self.rule.timezone)
        if known != (cron, timezone) or self.done > now:
            self.rule, self.done = Rule(cron, timezone, now), now
            self.file.write_text(json_text(asdict(self.rule)) + "\n")

    def due(self, now: datetime) -> datetime | None:
        """The last planned time up to now, if its night is not done."""
        rule, last = self.rule, self.done
        while rule and (times := planned_times(rule.cron, rule.timezone, last, now)):
            last = times[-1]
        return last if last > self.done else None

    def night_of(self, asked: datetime, now: datetime) -> datetime | None:
        """The planned time of the night that a run which was asked for at a time should do.

        It is that time itself if no schedule planned it, and None if the night is done. Prefect may
        start a run a second early.
        """
        return self.due(max(asked, now)) or (asked if asked > self.done else None)


def read_record(file: StorePath, kind: type[Kind]) -> Kind | None:
    """The dataclass that a JSON file holds; None if there is none.

    Raises `WrongInput` if the file is damaged.
    """
    try:
        return TypeAdapter(kind).validate_json(file.read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        raise WrongInput(f"{file} is damaged; remove it, and it is written anew") from None
