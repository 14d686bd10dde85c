"""Source of CSV or space-separated files, whose rows all have the columns of the first row.

One column is the target. Blocks of lines are parsed by pyarrow's CSV reader if every line is plain.
Redundant quotes and spaces are removed first. Input that the reader accepts but `ColumnText.slow`
rejects is detected here and left to `slow`.
"""

import math
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.errors import WrongInput
from storage.sources.arrow import is_text
from storage.sources.features import ColumnSource, Parsed, column_fields
from storage.sources.numbers import (
    CHOOSE,
    DROP_ROWS,
    MISSING,
    at,
    is_missing,
    is_other_number,
    number_of,
)
from storage.sources.problems import Problems
from storage.sources.source import Reading
from storage.sources.text.source import (
    BYTE_ORDER_MARK,
    MOST_FIELD,
    TextSource,
    Unusual,
    read_csv,
    with_unix_ends,
)
from storage.sources.text.top import between, fields_of, inspect

# rare characters that also separate columns; text with them is left to the slow parser
SPACES = b"\x0b\x0c\x1c\x1d\x1e\x1f"
NEWLINE, QUOTE = b'\n"'
# as the reader sees missing values; other spellings are left to the slow parser
NULLS = [
    space + spelled
    for mark in MISSING
    for spelled in sorted({mark, mark.upper(), mark.capitalize(), "NaN"} if mark else {""})
    for space in ("", " ")
]
OTHER_NAN = re.compile(rb"-nan|nan\(", re.IGNORECASE)  # other NaN to the reader


@dataclass(kw_only=True)
class ColumnText(TextSource[Parsed], ColumnSource):
    """Source of CSV or space-separated files, concatenated in order."""

    def fast(self, text: bytes) -> Parsed:
        """Parse lines of a table with pyarrow's CSV reader."""
        choice = self.choice
        plain = with_unix_ends(text)
        delimiter = " "
        plain.decode("utf-8")
        if self.format == "csv":
            delimiter = choice.separator
            plain = without_quotes(plain, delimiter)
        else:
            plain = single_spaced(plain)
        other_nan = self.missing and OTHER_NAN.search(plain)
        # the reader would drop a byte order mark at the beginning
        marked = plain.startswith(BYTE_ORDER_MARK)
        if not plain or marked or other_nan or b"\0" in plain or len(plain) > MOST_FIELD:
            raise Unusual
        of_texts = choice.texts if self.rule.text is None else (*choice.texts, choice.target)
        types = {
            str(k): pa.string() if k in of_texts else pa.float64()
            for k in (*choice.features, choice.target)
        }
        names = map(str, range(choice.width))
        nulls = NULLS if self.missing else []
        table = read_csv(plain, delimiter, names, types, nulls, len(plain) + 1)
        columns = [table.column(name).combine_chunks() for name in types]
        trimmed = [pc.utf8_trim_whitespace(one) if is_text(one.type) else one for one in columns]
        return self.from_arrow(trimmed, str)

    def slow(self, lines: Iterable[tuple[int, bytes]], path: Path) -> Parsed:
        """Parse lines of a table one by one. Raises `Malformed` with every kind of fault."""
        choice = self.choice
        problems = Problems()
        labels = array("d")
        values = array("d")
        texts: dict[int, dict[str, int]] = {k: {} for k in choice.texts}
        remedy = (
            "correct it"
            if choice.one_hot
            else "correct it, or treat its texts as categories with --one-hot"
        )

        def feature(line: int, k: int, text: str) -> float:
            if k in texts and not is_other_number(text):
                return texts[k].setdefault(text, len(texts[k]))
            if self.missing and is_missing(text):
                return math.nan
            return number_of(text.encode(), path, line, choice.called(k), remedy, if_missing=CHOOSE)

        def label(line: int, text: str) -> float:
            if self.missing == "drop" and is_missing(text) and self.rule.number(text) is None:
                return math.nan
            what = choice.called(choice.target)
            return self.rule(text.encode(), path, line, what, if_missing=DROP_ROWS)

        for number, line in problems.until_fault(lines):
            split = partial(fields_of, line, number, path, self.format, choice.separator)
            fields = problems.noting(split, list[str](), "line")
            if len(fields) != choice.width:
                if fields:
                    wrong = (
                        f"{at(path, number)}: {len(fields)} columns where the first line has"
                        f" {choice.width}; correct or remove the line"
                    )
                    problems.add(WrongInput(wrong), "width")
                continue
            for k in choice.features:
                text = fields[k]
                kind = "missing" if is_missing(text) else "no number"
                read = partial(feature, number, k, text)
                values.append(problems.noting(read, math.nan, kind, choice.called(k)))
            text = fields[choice.target]
            kind = "missing label" if is_missing(text) else "label"
            labels.append(problems.noting(partial(label, number, text), math.nan, kind))
        problems.refuse()
        matrix = np.array(values).reshape(len(labels), len(choice.features))
        return Parsed(np.array(labels), matrix, {k: list(found) for k, found in texts.items()})


def column_source(
    paths: Sequence[Path], form: str, reading: Reading, block_bytes: int
) -> ColumnText:
    """Open CSV or space-separated files (`form` is "csv" or "space") as one source.

    The columns of the first file apply to all. Raises `WrongInput` if the first lines of a file are
    malformed.
    """
    choice, first = inspect(paths[0], form, reading, None)
    files = [first, *(inspect(path, form, reading, choice)[1] for path in paths[1:])]
    fields = column_fields(paths, form, choice, reading)
    return ColumnText(
        **fields,
        files=tuple(files),
        block_bytes=block_bytes,
        between=between(form, choice.separator),
    )


def without_quotes(text: bytes, separator: str) -> bytes:
    """CSV text without quotes, each pair of which encloses a whole field without separators."""
    if b'"' not in text:
        return text
    codes = np.frombuffer(b"\n" + text, np.uint8)
    quotes = np.flatnonzero(codes == QUOTE)
    opening = quotes[0::2]
    closing = quotes[1::2]
    breaks = (codes == ord(separator)) | (codes == NEWLINE)
    if opening.size != closing.size or not (breaks[opening - 1] & breaks[closing + 1]).all():
        raise Unusual
    before = np.cumsum(breaks)
    if (before[opening] != before[closing]).any():
        raise Unusual
    return text.translate(None, b'"')


def single_spaced(text: bytes) -> bytes:
    """Text with single spaces between columns, which no other characters separate."""
    if not text.isascii() or any(byte in text for byte in SPACES):
        raise Unusual
    text = text.replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")
