"""Planned times of schedules: which one is due, and which are done.

The store has this record, so that no time is missed or done twice if a process is killed or
Prefect's database is lost. Of the times that have passed, only the last one is due, until its run
has ended. Whoever runs it holds the lock for nightly runs meanwhile.
"""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path

KEPT = 200  # planned times of a schedule in the record
WINDOWS = (timedelta(hours=2), timedelta(days=2), timedelta(days=70), timedelta(days=1500))
MOST = 1000  # planned times that one call to Prefect returns, as many as it can
AROUND = timedelta(hours=3)  # longer than what the clock skips or repeats
RULE = ("cron", "timezone", "since")  # texts of a schedule's record
AHEAD = timedelta(days=1)  # planned times that are further in the future do not count
TRIES = 3  # a planned time is given up after so many interrupted runs


def planned_times(
    cron: str, timezone: str, start: datetime, end: datetime | None = None
) -> list[datetime]:
    """At most `MOST` times from `start` to `end` at which a cron expression is due, by Prefect's
    rules; without an end, at most the first one. Must not be called in a thread with an event loop.

    Raises `ValueError` if Prefect does not accept the expression, or if it names no time for years.
    """
    from prefect.server.schemas.schedules import CronSchedule

    schedule = CronSchedule(cron=cron, timezone=timezone)
    # Between times in or beside an hour that the clock skips or repeats, Prefect gives other ones.
    dates = asyncio.run(
        schedule.get_dates(MOST if end else 1, start - AROUND, end and end + AROUND)
    )
    planned = (datetime.fromtimestamp(date.timestamp(), UTC) for date in dates)
    return [time for time in planned if start <= time <= (end or time)]


def last_planned(cron: str, timezone: str, now: datetime) -> datetime | None:
    """The last time up to `now` at which a cron expression was due; None if there is none."""
    for window in WINDOWS:
        start, found = now - window, None
        while dates := planned_times(cron, timezone, start, now):
            found = dates[-1]
            start = found + timedelta(seconds=1)
        if found is not None:
            return found
    return None


class Times:
    """Record in a store of the planned times of one schedule."""

    def __init__(self, store: AnyPath, name: str) -> None:
        folder = store_path(store) / "schedules"
        self.rule, self.times = folder / f"{name}.json", folder / f"{name}.times.json"

    def begin(self, cron: str, timezone: str, now: datetime) -> datetime:
        """Time since which the schedule has its cron expression: `now` if it is new or changed.

        Also `now` if the clock was ahead when that time was noted.
        """
        noted, rule = read_json(self.rule, RULE), {"cron": cron, "timezone": timezone}
        if not rule.items() <= noted.items() or _time(noted["since"], self.rule) > now:
            noted = {**rule, "since": now.isoformat()}
            self.rule.write_text(json_text(noted) + "\n")
        return _time(noted["since"], self.rule)

    def due(self, now: datetime) -> datetime | None:
        """The last planned time, if its run has not ended; None if nothing is due."""
        if not (noted := read_json(self.rule, RULE)):
            return None
        last = last_planned(noted["cron"], noted["timezone"], now)
        since = _time(noted["since"], self.rule)
        return last if last and last >= since and not self.has_ended(last) else None

    def has_ended(self, planned: datetime) -> bool:
        """Whether the run of a planned time has ended, with any result."""
        return "ended" in self.done().get(_key(planned), {})

    def why_not(self, planned: datetime, now: datetime) -> str | None:
        """Reason why the run of a planned time must not be done now; None if it should be done."""
        if self.has_ended(planned):
            result = self.done()[_key(planned)]["result"]
            return f"the run of {_key(planned)} has ended already: {result}"
        if (last := self.due(now)) is not None and last > planned:
            return f"skipped: {_key(last)}, which was scheduled later, is due too"
        # Times that are far in the future were noted while the clock was ahead.
        begun = max((time for time in self.done() if time <= _key(now + AHEAD)), default="")
        if begun > _key(planned):
            return f"skipped: the run of {begun}, which was scheduled later, has begun already"
        return None

    def note_begun(self, planned: datetime, now: datetime) -> int:
        """Record that a run begins; returns how often it has begun."""
        before = self.done().get(_key(planned), {}).get("begun", [])
        self._note(planned, begun=[*before, now.isoformat(timespec="seconds")])
        return len(before) + 1

    def note_ended(self, planned: datetime, now: datetime, result: str) -> None:
        """Record that the run of a planned time has ended, and its result."""
        self._note(planned, ended=now.isoformat(timespec="seconds"), result=result)

    def done(self) -> dict[str, dict[str, Any]]:
        """The record by planned time: when its run began (each time) and ended, and the result."""
        found = read_json(self.times)
        for planned, run in found.items():
            begun = run.get("begun") if isinstance(run, dict) else None
            if not isinstance(begun, list) or not all(isinstance(one, str) for one in begun):
                raise _damaged(self.times)
            if "ended" in run and not isinstance(run.get("result"), str):
                raise _damaged(self.times)
            _time(planned, self.times)
        return found

    def _note(self, planned: datetime, **more: Any) -> None:
        every = self.done()
        # The last one noted stands last, so that it is kept whatever the clock said before.
        every[_key(planned)] = every.pop(_key(planned), {"begun": []}) | more
        kept = list(every)[-KEPT:]
        self.times.write_text(json_text({key: every[key] for key in kept}, indent=1) + "\n")


def _key(planned: datetime) -> str:
    return planned.astimezone(UTC).isoformat(timespec="seconds")


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
        raise _damaged(file)
    return found


def _time(text: str, file: StorePath) -> datetime:
    """A time with its zone. Raises `WrongInput` with the file if the text is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise _damaged(file) from None
    if time.tzinfo is None:
        raise _damaged(file)
    return time


def _damaged(file: StorePath) -> WrongInput:
    return WrongInput(f"{file} is damaged; remove it, and it is written anew")
