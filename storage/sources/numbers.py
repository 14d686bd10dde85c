"""Text fields as finite numbers, dates as their parts, and the rule that numbers label texts."""

import math
import re
import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from koco_stream.errors import refuse_first

NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z")
SIGN = r"[+\-−–]?"
MONEY = r"(?:[$¢£¤¥₠-⃏]|US\$|R\$|USD|EUR|GBP|CHF|JPY)"
# digits with a decimal point; with a decimal comma; in groups of thousands, or of Indian hundreds
DIGITS = (
    r"(?:\d+\.?\d*|\.\d+|\d*,\d+|\d+(?:_\d+)+(?:\.\d+)?|\d{1,2}(?:,\d\d)*,\d{3}(?:\.\d+)?"
    r"|\d{1,3}(?P<by>[,.'’ \u00a0\u2009\u202f])\d{3}(?:(?P=by)\d{3})*(?:[.,]\d+)?)"
    r"(?:[eE][+-]?\d+)?"
)
OTHER_NOTATION = re.compile(
    rf"{SIGN}\s?\(?(?:{MONEY}\s?{SIGN}\s?)?{DIGITS}\s?(?:{MONEY}|[%‰])?\)?"
    rf"|{SIGN}0(?:[xX][\da-fA-F_]+|[oO][0-7_]+|[bB][01_]+)|{SIGN}\d*\.\d*[dD][+-]?\d+"
)
REWRITE = (
    "write it with digits and a decimal point only, such as -1234.5 (if all commas of the file are"
    " decimal ones: tr , . < FILE > NEW)"
)
CHOOSE = (
    "fill the value in, or say what to do with missing values: --missing mean or --missing drop"
)
DROP_ROWS = "fill the value in or remove the row; --missing drop leaves all such rows out"
MISSING = ("", "?", "na", "n/a", "nan", "null", "none")
MOST_DIGITS = 60  # characters of a number in another notation
FILL_IN = "remove the row or fill the value in"
LETTERS = [f"{chr(ord('A') + k)}={k + 1}" for k in range(26)]


def at(path: Path, line: int, column: int | None = None) -> str:
    return f"{path}, line {line}" if column is None else f"{path}, line {line}, column {column}"


def shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace").strip()[:60])


def is_missing(text: str) -> bool:
    return text.strip().lower().lstrip("+-") in MISSING


def is_infinite(text: str) -> bool:
    return text.strip().lower().lstrip("+-") in ("inf", "infinity")


def is_number(text: str) -> bool:
    return NUMBER.match(text.encode()) is not None


def is_other_number(text: str) -> bool:
    """Whether a field is a number in a notation that is not read: `3,14`, `1 234` or `12%`."""
    short = len(text) <= MOST_DIGITS and any(map(str.isdigit, text))
    return short and not is_number(text) and OTHER_NOTATION.fullmatch(text) is not None


def is_numeric(text: str) -> bool:
    return is_number(text) or is_other_number(text)


def number_in(text: str) -> float | None:
    """Unlike `float`, it takes no "nan", "inf" or "1_000"."""
    number = float(text) if is_number(text) else math.inf
    return number if math.isfinite(number) else None


def no_number(
    text: str, remedy: str = "correct it", if_missing: str = FILL_IN, rewrite: str = REWRITE
) -> str:
    """A text in the place of a number, and what to do."""
    text = text[:60]
    fitting = {is_missing: if_missing, is_infinite: FILL_IN, is_other_number: rewrite}
    advice = next((words for fits, words in fitting.items() if fits(text)), remedy)
    return f"{text!r}, not a finite number; {advice}"


class LabelRule:
    """Mapping from label texts to numbers, as given with `--labels`."""

    def __init__(self, text: str | None, remedy: str = "") -> None:
        self.text = text
        self.remedy = remedy  # for a label that is no number, if not a rule
        self.values: dict[str, float] = {}
        pairs = LETTERS if text == "letters" else [] if text is None else text.split(",")
        for pair in pairs:
            name, equals, value = (side.strip() for side in pair.rpartition("="))
            number = float(value) if NUMBER.match(value.encode()) else math.inf
            refuse_first(
                [
                    (
                        not equals or not name or not math.isfinite(number),
                        f"--labels {text!r}: {pair.strip()!r} is not LABEL=NUMBER; write for"
                        " example g=1,b=-1, or letters",
                    ),
                    (name in self.values, f"--labels {text!r}: {name!r} is given twice"),
                ]
            )
            self.values[name] = number
        numeric = [name for name in self.values if NUMBER.match(name.encode())]
        self.numbers = {float(name): self.values[name] for name in numeric}
        # whether a label's numeric value determines its text (not so for a rule with 1 and 1.0)
        self.one_text_a_number = len(self.numbers) == len(numeric)

    def number(self, label: str) -> float | None:
        """None if the rule does not have the label."""
        for known in (label, label.removesuffix(".")):
            if known in self.values:
                return self.values[known]
        number = number_in(label)
        return number if self.text is None or number is None else self.numbers.get(number)

    def fault(self, label: str, if_missing: str = FILL_IN) -> str:
        """A label that has no number, and what to do."""
        remedy = self.remedy_for(label)
        if self.text is None:
            return no_number(label, remedy, if_missing, f"{REWRITE}, or {remedy}")
        return f"{label[:60]!r}, which --labels {self.text!r} does not have; {remedy}"

    def remedy_for(self, name: str) -> str:
        """What to do with a label that has no number; no rule can have a comma in one."""
        more = ",".join(filter(None, [self.text, f"{name}={len(self.values) + 1}"]))
        remedies = [
            (not name.strip(), FILL_IN),
            (self.text is None, self.remedy),
            ("," in name, "give the row one label, without commas"),
            (self.text == "letters", "correct it"),
            (True, f"give its number, for example --labels {shlex.quote(more)}"),
        ]
        return next(one for fits, one in remedies if fits and one)

    @property
    def names(self) -> dict[float, str]:
        """Several names of one number are joined."""
        return {
            of: "/".join(text for text, number in self.values.items() if number == of)
            for of in self.values.values()
        }

    @property
    def done(self) -> tuple[str, ...]:
        return () if self.text is None else (f"labels by the rule {self.text}",)


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
