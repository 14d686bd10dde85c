"""Dates and times as numbers: the year, the day of the year, the weekday and the time of day."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

# the weekday from 1, Monday, to 7; the time of day in hours, in the time zone that it is written in
PARTS = ("year", "day_of_year", "weekday", "time_of_day")
# as ISO 8601 has them, also with slashes; a month alone; with dots, the day first
MOMENT = re.compile(
    r"(?P<date>\d{4}(?P<by>[-/])\d\d?(?P=by)\d\d?|\d{4}-\d\d|\d\d?\.\d\d?\.\d{4})?"
    r"(?:(?(date)(?:T| +))(?P<hour>\d\d?)(?P<rest>:\d\d(?::\d\d(?:[.,]\d+)?)?)?"
    r"(?: ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d){0,2}))?)?"
)
MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
# in notations that are not read: of some, day and month can be confused
OTHER_DATE = re.compile(
    rf"(?:\d\d?/\d\d?/(?:\d\d){{1,2}}|\d\d?-\d\d?-\d{{4}}|\d\d?[ -]{MONTHS}[ -](?:\d\d){{1,2}}"
    rf"|{MONTHS} \d\d?,? \d{{4}})(?:[T ,].*)?",
    re.IGNORECASE,
)


def moment(text: str) -> dict[str, float]:
    """The parts of a date, a month, a date and time, or a time; empty for other text."""
    found = MOMENT.fullmatch(text)
    if not found or not (found["date"] or found["rest"]):
        return {}
    digits = re.findall(r"\d+", found["date"] or "2000-1-1")
    year, month, day = [*(digits if len(digits[0]) == 4 else digits[::-1]), "1"][:3]
    time = f"{found['hour'] or '0':0>2}{found['rest'] or ':00'}"
    try:
        at = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{time}")
    except ValueError:
        return {}
    hours = (at - at.replace(hour=0, minute=0, second=0, microsecond=0)) / timedelta(hours=1)
    numbers = [float(at.year), float(at.timetuple().tm_yday), float(at.isoweekday()), hours]
    kept = slice(0, 2) if len(digits) == 2 else slice(0 if found["date"] else 3, 4)
    return dict(zip(PARTS[kept], numbers[kept], strict=True))


def parts_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Parts of a column that begins with these texts; none if the first is no date or time."""
    parts = tuple(moment(texts[0])) if texts else ()
    has_times = any(":" in text or len(text) > len("2024-12-31") for text in texts)
    return parts if has_times else tuple(part for part in parts if part != PARTS[-1])


def in_parts(text: str, parts: Sequence[str]) -> list[float] | None:
    """These parts; None if the text has others, or is no date or time."""
    found = moment(text)
    needed = {part for part, number in found.items() if number}
    return [found[part] for part in parts] if needed <= {*parts} <= found.keys() else None
