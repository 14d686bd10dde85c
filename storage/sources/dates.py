"""Dates and times as numbers: the year, the day of the year, the weekday and the time of day."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

# the weekday from 1, Monday, to 7; the time of day in hours, in the time zone that it is written in
PARTS = ("year", "day_of_year", "weekday", "time_of_day")
TIME = re.compile(r"\d\d:\d\d(:\d\d([.,]\d+)?)?")
DATE = re.compile(rf"\d{{4}}-\d\d-\d\d([T ]{TIME.pattern}.*)?")


def moment(text: str) -> dict[str, float]:
    """The parts of a date or time in ISO 8601; empty for other text."""
    is_time = TIME.fullmatch(text) is not None
    if not is_time and not DATE.fullmatch(text):
        return {}
    try:
        at = datetime.fromisoformat(f"2000-01-01T{text}" if is_time else text)
    except ValueError:
        return {}
    hours = (at - at.replace(hour=0, minute=0, second=0, microsecond=0)) / timedelta(hours=1)
    numbers = (float(at.year), float(at.timetuple().tm_yday), float(at.isoweekday()), hours)
    return {PARTS[-1]: hours} if is_time else dict(zip(PARTS, numbers, strict=True))


def parts_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Parts of a column that begins with these texts; none if the first is no date or time."""
    parts = tuple(moment(texts[0])) if texts else ()
    return parts if any(":" in text for text in texts) else parts[:-1]


def in_parts(text: str, parts: Sequence[str]) -> list[float] | None:
    """These parts; None if the text has others, or is no date or time."""
    found = moment(text)
    needed = {part for part, number in found.items() if number}
    return [found[part] for part in parts] if needed <= {*parts} <= found.keys() else None
