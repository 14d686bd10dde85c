"""What readers expect of every row of the table `runs`, whoever wrote it."""

import json
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

# The last two are those of the other tables.
NEEDED = ("run_id", "dataset", "order", "learner", "params", "status", "t", "first")
# In microseconds, a day inside of the calendar's ends because of time zones.
FIRST_TIME, LAST_TIME = (
    (time - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    for time in (datetime(1, 1, 2), datetime(9999, 12, 30))
)
# of runs that are done, and of those that may be computed again
SETTLED = ("ok", "diverged")
OPEN = ("failed", "stopped")
# JSON objects of numbers, plain texts and words, as nearly all `params` are. Python would take ten
# times as long to read them.
_TEXT = r'"[^"\\\x00-\x1f]*"'
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_VALUE = rf"(?:{_TEXT}|{_NUMBER}|true|false|null)"
PLAIN_OBJECT = rf"\A\{{(?:{_TEXT}: ?{_VALUE}(?:, ?{_TEXT}: ?{_VALUE})*)?\}}\z"


def check_rows(table: pa.Table) -> None:
    """Raise `pa.ArrowInvalid` with the column if a value is missing or wrong."""
    names = table.column_names
    for name in NEEDED:
        if name in names and table.column(name).null_count:
            raise pa.ArrowInvalid(f"a row has no {name}")
    for name in names:
        if pa.types.is_string(table.column(name).type):
            try:
                table.column(name).validate(full=True)
            except pa.ArrowException as error:
                raise pa.ArrowInvalid(f"column {name} has a text that is not UTF-8") from error
        if pa.types.is_timestamp(table.column(name).type):
            _check_times(table.column(name), name)
    if "params" in names:
        _check_objects(_texts(table, "params"))
    if "status" in names:
        statuses = pc.unique(_texts(table, "status")).to_pylist()
        if other := set(statuses).difference(SETTLED, OPEN):
            raise pa.ArrowInvalid(f"a row has status {min(other)!r}")


def _texts(table: pa.Table, name: str) -> pa.ChunkedArray:
    column = table.column(name)
    if column.type not in (pa.string(), pa.large_string(), pa.string_view()):
        if not pa.types.is_dictionary(column.type):
            raise pa.ArrowInvalid(f"column {name} is {column.type}, and string is needed")
    return column.cast(pa.string())


def _check_times(column: pa.ChunkedArray, name: str) -> None:
    ends = pc.min_max(column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())).as_py()
    if ends["min"] is not None and not FIRST_TIME <= ends["min"] <= ends["max"] <= LAST_TIME:
        raise pa.ArrowInvalid(f"column {name} has a time outside the years 1 to 9999")


def _check_objects(params: pa.ChunkedArray) -> None:
    plain = pc.match_substring_regex(params, PLAIN_OBJECT)
    if pc.all(plain).as_py() is not False:
        return  # filters would import pandas, which takes a third of a second
    for text in params.filter(pc.invert(plain)).to_pylist():
        try:
            fits = isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            fits = False
        if not fits:
            raise pa.ArrowInvalid(f"params of a row are not an object in JSON: {text[:60]!r}")
