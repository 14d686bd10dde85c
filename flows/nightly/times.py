"""The planned times of schedules: which one is due, which were done. The store remembers, so that
neither a killed process nor a lost database of Prefect's misses a time or does one twice.

Of the times that have passed only the last is due. What is due is done once: a time whose run was
cut is due until its run has ended, and whoever does it holds the lock of nightly runs while he
looks and while he works.
"""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from koco_stream.io.paths import AnyPath, StorePath, store_path

KEPT = 200  # times of a schedule that are remembered
WINDOWS = (timedelta(hours=2), timedelta(days=2), timedelta(days=70), timedelta(days=1500))
MOST = 500  # times that Prefect is asked for at once
TRIES = 3  # a time whose run was cut so often is given up


def planned_times(
    cron: str, timezone: str, start: datetime, end: datetime | None = None
) -> list[datetime]:
    """The first times from `start` to `end`, at most `MOST`, that the cron expression names in this
    time zone; without an end the first one only.

    Prefect's own rules, also where clocks change. Raises `ValueError` for what Prefect does not
    take, and where no time is found in years. Not for a thread with an event loop.
    """
    from prefect.server.schemas.schedules import CronSchedule

    schedule = CronSchedule(cron=cron, timezone=timezone)
    dates = asyncio.run(schedule.get_dates(MOST if end else 1, start, end))
    return [datetime.fromtimestamp(date.timestamp(), UTC) for date in dates]


def last_planned(cron: str, timezone: str, now: datetime) -> datetime | None:
    """The last time at or before `now` that the cron expression names in this time zone; None if it
    names none in years.
    """
    for window in WINDOWS:
        start, found = now - window, None
        while dates := planned_times(cron, timezone, start, now):
            found = dates[-1]
            start = found + timedelta(seconds=1)
        if found is not None:
            return found
    return None


class Times:
    """The times of one schedule that a store remembers."""

    def __init__(self, store: AnyPath, name: str) -> None:
        folder = store_path(store) / "schedules"
        self.rule, self.times = folder / f"{name}.json", folder / f"{name}.times.json"

    def begin(self, cron: str, timezone: str, now: datetime) -> datetime:
        """Since when the schedule is as it is: times before that were not missed. It begins now if
        it is new or has another cron.
        """
        noted, rule = _read(self.rule), {"cron": cron, "timezone": timezone}
        if not rule.items() <= noted.items():
            noted = {**rule, "since": now.isoformat()}
            self.rule.write_text(json.dumps(noted) + "\n")
        return datetime.fromisoformat(noted["since"])

    def due(self, now: datetime) -> datetime | None:
        """The last planned time, if its run has not ended; None if nothing is due."""
        noted = _read(self.rule)
        if not noted:
            return None
        last = last_planned(noted["cron"], noted["timezone"], now)
        if last is None or last < datetime.fromisoformat(noted["since"]) or self.has_ended(last):
            return None
        return last

    def has_ended(self, planned: datetime) -> bool:
        """Whether the run of a planned time has ended, one way or the other."""
        return "ended" in self.done().get(_key(planned), {})

    def why_not(self, planned: datetime, now: datetime) -> str | None:
        """Why the run of a planned time is not to be done now; None if it is."""
        if self.has_ended(planned):
            result = self.done()[_key(planned)]["result"]
            return f"the run of {_key(planned)} has ended already: {result}"
        last = self.due(now)
        if last is not None and last > planned:
            return f"left out: {_key(last)}, which was planned after it, is due too"
        begun = max(self.done(), default="")
        if begun > _key(planned):
            return f"left out: the run of {begun}, which was planned after it, has begun already"
        return None

    def note_begun(self, planned: datetime, now: datetime) -> int:
        """Note that a run begins; returns how often it has begun."""
        begun = [*self._noted(planned)["begun"], now.isoformat(timespec="seconds")]
        self._note(planned, begun=begun)
        return len(begun)

    def note_ended(self, planned: datetime, now: datetime, result: str) -> None:
        """Note that a run has ended, and how."""
        self._note(planned, ended=now.isoformat(timespec="seconds"), result=result)

    def done(self) -> dict[str, dict[str, Any]]:
        """What is remembered of each planned time: when it was begun, each time, when it has ended,
        and the result.
        """
        return _read(self.times)

    def _noted(self, planned: datetime) -> dict[str, Any]:
        return self.done().get(_key(planned), {"begun": []})

    def _note(self, planned: datetime, **more: Any) -> None:
        every = {**self.done(), _key(planned): {**self._noted(planned), **more}}
        kept = {key: every[key] for key in sorted(every)[-KEPT:]}
        self.times.write_text(json.dumps(kept, indent=1) + "\n")


def _key(planned: datetime) -> str:
    return planned.astimezone(UTC).isoformat(timespec="seconds")


def _read(file: StorePath) -> dict[str, Any]:
    try:
        return json.loads(file.read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}
