"""The planned times of a schedule, by Prefect's own clock, and which of them the store has.

A night is named by its planned time. Of those that have passed, only the last one is due.
"""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path
from storage.nights import read_nights

MOST = 1000  # planned times that one call to Prefect returns, as many as it can
AROUND = timedelta(hours=3)  # longer than what the clock skips or repeats
NEW = {"cron": "", "timezone": "", "since": "1970-01-01T00:00:00+00:00"}  # no schedule


def planned_times(cron: str, timezone: str, start: datetime, end: datetime) -> list[datetime]:
    """The first planned times of a cron expression after `start`, up to `end`, as Prefect has them.

    Raises `ValueError` if Prefect does not accept the expression, or if it names no time for years.
    """
    from prefect.server.schemas.schedules import CronSchedule

    # Between times in or beside an hour that the clock skips or repeats, Prefect gives other ones.
    schedule = CronSchedule(cron=cron, timezone=timezone)
    dates = asyncio.run(schedule.get_dates(MOST, start - AROUND, end + AROUND))
    planned = (datetime.fromtimestamp(date.timestamp(), UTC) for date in dates)
    return [time for time in planned if start < time <= end]


class Times:
    """Which planned times of a sweep's schedule are done: all up to `done`.

    That is the last night that the store has, or when the schedule was first served. Raises
    `WrongInput` if a record in the store is damaged.
    """

    def __init__(self, store: AnyPath, sweep: str) -> None:
        self.file = store_path(store) / "schedules" / f"{sweep}.json"
        rule = read_json(self.file, tuple(NEW)) or NEW
        self.cron, self.timezone = rule["cron"], rule["timezone"]
        nights = read_nights(store, sweep).column("night").to_pylist()
        try:
            self.done = max(map(datetime.fromisoformat, [rule["since"], *nights]))
        except (TypeError, ValueError):
            raise damaged(self.file) from None

    def begin(self, cron: str, timezone: str, now: datetime) -> None:
        """Let a schedule count from now on if it is new or has changed, or the clock was ahead."""
        if (cron, timezone) != (self.cron, self.timezone) or self.done > now:
            self.cron, self.timezone, self.done = cron, timezone, now
            rule = {"cron": cron, "timezone": timezone, "since": now.isoformat()}
            self.file.write_text(json_text(rule) + "\n")

    def due(self, now: datetime) -> datetime | None:
        """The last planned time up to now, if its night is not done."""
        last = self.done
        while self.cron and (times := planned_times(self.cron, self.timezone, last, now)):
            last = times[-1]
        return last if last > self.done else None

    def night_of(self, asked: datetime, now: datetime) -> datetime | None:
        """The planned time of the night that a run which was asked for at a time should do.

        It is that time itself if no schedule planned it, and None if the night is done. Prefect may
        start a run a second early.
        """
        return self.due(max(asked, now)) or (asked if asked > self.done else None)


def read_json(file: StorePath, texts: Sequence[str] = ()) -> dict[str, Any]:
    """Content of a JSON file; empty if there is none.

    Raises `WrongInput` if it is not an object, or if one of its `texts` is missing.
    """
    try:
        found = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in texts):
        raise damaged(file)
    return found


def damaged(file: StorePath) -> WrongInput:
    """The error for a damaged record."""
    return WrongInput(f"{file} is damaged; remove it, and it is written anew")
