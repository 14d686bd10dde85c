"""The planned times of schedules: which one is due, which were done. The store remembers, so that
neither a killed process nor a lost database of Prefect's misses a time or does one twice.

Of the times that have passed only the last is due. What is due is done once: a time whose run was
cut is due until its run has ended, and whoever does it holds the lock of nightly runs while he
looks and while he works.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from koco_stream.io.paths import AnyPath, StorePath, store_path

KEPT = 200  # times of a schedule that are remembered
WINDOWS = (timedelta(hours=2), timedelta(days=2), timedelta(days=70), timedelta(days=1500))
TRIES = 3  # a time whose run was cut so often is given up


def last_planned(cron: str, timezone: str, now: datetime) -> datetime | None:
    """The last time at or before `now` that the cron expression names in this time zone; None if it
    names none in years. Prefect's own rules, also where clocks change.
    """
    from prefect.server.schemas.schedules import CronSchedule

    schedule = CronSchedule(cron=cron, timezone=timezone)
    for window in WINDOWS:
        start = now - window
        found: datetime | None = None
        while dates := [
            datetime.fromtimestamp(d.timestamp(), UTC)
            for d in schedule._get_dates_generator(n=500, start=start, end=now)
        ]:
            found = dates[-1]
            if len(dates) < 500:
                break
            start = found + timedelta(seconds=1)
        if found is not None:
            return found
    return None


class Times:
    """The times of one schedule that a store remembers."""

    def __init__(self, store: AnyPath, name: str) -> None:
        self.folder, self.name = store_path(store) / "schedules", name

    def begin(self, cron: str, timezone: str, now: datetime) -> datetime:
        """Since when the schedule is as it is: times before that were not missed. It begins now if
        it is new or has another cron.
        """
        noted, rule = _read(self.folder / f"{self.name}.json"), {"cron": cron, "timezone": timezone}
        if {key: noted.get(key) for key in rule} != rule:
            noted = {**rule, "since": now.isoformat()}
            (self.folder / f"{self.name}.json").write_text(json.dumps(noted) + "\n")
        return datetime.fromisoformat(noted["since"])

    def due(self, now: datetime) -> datetime | None:
        """The last planned time, if its run has not ended; None if nothing is due."""
        noted = _read(self.folder / f"{self.name}.json")
        if not noted:
            return None
        last = last_planned(noted["cron"], noted["timezone"], now)
        if last is None or last < datetime.fromisoformat(noted["since"]) or self.has_ended(last):
            return None
        return last

    def has_ended(self, planned: datetime) -> bool:
        """Whether the run of a planned time has ended, one way or the other."""
        return bool(self.done().get(_key(planned), {}).get("ended"))

    def why_not(self, planned: datetime, now: datetime) -> str | None:
        """Why the run of a planned time is not to be done now; None if it is."""
        if self.has_ended(planned):
            return (
                f"the run of {_key(planned)} has ended already:"
                f" {self.done()[_key(planned)]['result']}"
            )
        last = self.due(now)
        if last is not None and last > planned:
            return f"left out: {_key(last)}, which was planned after it, is due too"
        later = [key for key in self.done() if datetime.fromisoformat(key) > planned]
        return (
            f"left out: the run of {max(later)}, which was planned after it, has begun already"
            if later
            else None
        )

    def note_begun(self, planned: datetime, now: datetime) -> int:
        """Note that a run begins; returns how often it has begun."""
        noted = self.done().get(_key(planned), {"begun": []})
        noted["begun"] = [*noted["begun"], now.isoformat(timespec="seconds")]
        self._note(planned, noted)
        return len(noted["begun"])

    def note_ended(self, planned: datetime, now: datetime, result: str) -> None:
        """Note that a run has ended, and how."""
        noted = self.done().get(_key(planned), {"begun": []})
        self._note(planned, {**noted, "ended": now.isoformat(timespec="seconds"), "result": result})

    def done(self) -> dict[str, dict[str, Any]]:
        """What is remembered of each planned time: when it was begun, each time, when it has ended,
        and the result.
        """
        return _read(self.folder / f"{self.name}.times.json")

    def _note(self, planned: datetime, noted: dict[str, Any]) -> None:
        every = {**self.done(), _key(planned): noted}
        kept = {key: every[key] for key in sorted(every)[-KEPT:]}
        (self.folder / f"{self.name}.times.json").write_text(json.dumps(kept, indent=1) + "\n")


def _key(planned: datetime) -> str:
    return planned.astimezone(UTC).isoformat(timespec="seconds")


def _read(file: StorePath) -> dict[str, Any]:
    try:
        return json.loads(file.read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}
