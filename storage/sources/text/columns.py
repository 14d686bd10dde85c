"""Source of CSV or space-separated files, whose rows all have the columns of the first row.

One column is the target. Blocks of lines are parsed by pyarrow's CSV reader if every line is plain.
Redundant quotes and spaces are removed first. Input that the reader accepts but `columns_lines`
rejects is detected here and left to `columns_lines`.
"""

import csv
import math
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.features import Choice, ColumnSource, Parsed, column_fields
from storage.sources.numbers import (
    CHOOSE,
    DROP_ROWS,
    MISSING,
    LabelRule,
    at,
    is_missing,
    is_other_number,
    number_of,
)
from storage.sources.problems import Problems
from storage.sources.source import Reading
from storage.sources.text.columns_top import inspect
from storage.sources.text.source import (
    BYTE_ORDER_MARK,
    MOST_FIELD,
    TextSource,
    read_csv,
    refuse_long,
    with_unix_ends,
)

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

    def fast(self, text: bytes) -> Parsed | None:
        """Parse lines of a table with pyarrow's CSV reader; None if a line is not plain."""
        plain = with_unix_ends(text)
        if plain is None or b"\0" in plain:
            return None
        try:
            plain.decode("utf-8")
        except UnicodeDecodeError:
            return None
        choice, delimiter = self.choice, self.choice.separator
        if self.format == "csv":
            plain = without_quotes(plain, delimiter)
        else:
            plain, delimiter = single_spaced(plain), " "
        # the reader would drop a byte order mark at the beginning
        if not plain or plain.startswith(BYTE_ORDER_MARK) or len(plain) > MOST_FIELD:
            return None
        if self.missing and OTHER_NAN.search(plain):
            return None
        of_texts = choice.texts
        if self.rule.text is not None:
            of_texts = (*of_texts, choice.target)
        types = {
            str(k): pa.string() if k in of_texts else pa.float64()
            for k in (*choice.features, choice.target)
        }
        nulls = NULLS if self.missing else []
        names = map(str, range(choice.width))
        table = read_csv(plain, delimiter, names, types, nulls, len(plain) + 1)
        if table is None:
            return None
        values = np.empty((table.num_rows, len(choice.features)))
        texts: dict[int, list[str]] = {}
        for position, k in enumerate(choice.features):
            if k in choice.texts:
                values[:, position], texts[k] = _encode_texts(table.column(str(k)))
                if any(map(is_other_number, texts[k])):
                    return None
            else:
                values[:, position] = table.column(str(k)).to_numpy()
        labels = _apply_rule(table.column(str(choice.target)), self.rule, self.missing == "drop")
        if labels is None:
            return None
        refused = np.isinf if self.missing else lambda numbers: ~np.isfinite(numbers)
        refused_label = (
            np.isinf if self.missing == "drop" else lambda numbers: ~np.isfinite(numbers)
        )
        if refused(values).any() or refused_label(labels).any():
            return None
        return Parsed(labels, values, texts)

    def slow(self, lines: Iterable[tuple[int, bytes]], path: Path) -> Parsed:
        """Parse lines of a table one by one. Raises `Malformed` with every kind of fault."""
        return column_lines(lines, path, self.format, self.choice, self.rule, self.missing)


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


def without_quotes(text: bytes, separator: str) -> bytes | None:
    """CSV text without quotes; None unless each pair encloses a whole field without separators."""
    if b'"' not in text:
        return text
    codes = np.frombuffer(b"\n" + text, np.uint8)
    quotes = np.flatnonzero(codes == QUOTE)
    opening, closing = quotes[0::2], quotes[1::2]
    breaks = (codes == ord(separator)) | (codes == NEWLINE)
    if opening.size != closing.size or not (breaks[opening - 1] & breaks[closing + 1]).all():
        return None
    before = np.cumsum(breaks)
    return text.translate(None, b'"') if (before[opening] == before[closing]).all() else None


def single_spaced(text: bytes) -> bytes | None:
    """Text with single spaces between columns; None if other characters may separate them."""
    if not text.isascii() or any(byte in text for byte in SPACES):
        return None
    text = text.replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")


def _encode_texts(column: pa.ChunkedArray) -> tuple[Array, list[str]]:
    """Encode a text column as (code of each row, distinct texts).

    Texts are stripped of surrounding spaces and listed in order of first occurrence.
    """
    coded = column.combine_chunks().dictionary_encode()
    texts = [text.strip() for text in coded.dictionary.to_pylist()]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return np.array([numbers[text] for text in texts])[coded.indices.to_numpy()], list(numbers)


def _apply_rule(column: pa.ChunkedArray, rule: LabelRule, may_miss: bool) -> Array | None:
    """Numbers of labels; None if the rule lacks one. Missing labels are NaN if they `may_miss`."""
    if rule.text is None:
        return column.to_numpy()
    numbers, texts = _encode_texts(column)
    known = [
        math.nan if number is None and may_miss and is_missing(text) else number
        for text, number in zip(texts, map(rule.number, texts), strict=True)
    ]
    return None if None in known else np.array(known, dtype=np.float64)[numbers]


MOST_COLUMNS = 1_000_000  # each may become a feature, named in the manifest


def column_lines(
    lines: Iterable[tuple[int, bytes]],
    path: Path,
    form: str,
    choice: Choice,
    rule: LabelRule,
    missing: str | None,
) -> Parsed:
    """Parse rows of CSV or space-separated text from (number, line) pairs.

    With `missing`, as in `Reading`, missing values are NaN; missing labels too if it is "drop".
    Raises `Malformed` with the line and column of every kind of fault.
    """
    labels, values = array("d"), array("d")
    texts: dict[int, dict[str, int]] = {k: {} for k in choice.texts}
    remedy = (
        "correct it"
        if choice.one_hot
        else "correct it, or treat its texts as categories with --one-hot"
    )
    problems = Problems()
    none: list[str] = []

    def feature(line: int, k: int, text: str) -> float:
        if k in texts and not is_other_number(text):
            return texts[k].setdefault(text, len(texts[k]))
        if missing and is_missing(text):
            return math.nan
        return number_of(text.encode(), path, line, choice.called(k), remedy, if_missing=CHOOSE)

    def label(line: int, text: str) -> float:
        if missing == "drop" and is_missing(text) and rule.number(text) is None:
            return math.nan
        what = choice.called(choice.target)
        return rule(text.encode(), path, line, what, if_missing=DROP_ROWS)

    for number, line in problems.until_fault(lines):
        split = partial(fields_of, line, number, path, form, choice.separator)
        fields = problems.noting(split, none, "line")
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


def between(form: str, separator: str) -> tuple[bytes, ...]:
    """What may stand between two fields of CSV, or of space-separated text."""
    return (separator.encode(),) if form == "csv" else (b" ", b"\t")


def fields_of(line: bytes, number: int, path: Path, form: str, separator: str) -> list[str]:
    """Split a line of CSV or space-separated text into stripped fields; none if it is blank.

    `form` is "csv" or "space", and `separator` stands between the fields of CSV. Raises
    `WrongInput` for too many or too long fields, for other bytes than UTF-8, and for wrong quotes.
    """
    separators = between(form, separator)
    refuse_long(path, number, line, "field", MOST_FIELD, separators)
    if sum(map(line.count, separators)) >= MOST_COLUMNS:
        raise WrongInput(
            f"{at(path, number)}: more than {MOST_COLUMNS:,} columns; write rows of so many"
            " features as LIBSVM text, without their zeros"
        )
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongInput(
            f"{at(path, number, error.start + 1)}: {error}; save the file as UTF-8"
        ) from None
    if form == "space":
        return text.split()
    fields = _csv_fields(text, path, number, separator)
    return [] if fields == [""] else fields


def _csv_fields(text: str, path: Path, line: int, separator: str) -> list[str]:
    if '"' not in text:
        return [field.strip() for field in text.split(separator)]
    try:
        reader = csv.reader([text], delimiter=separator, strict=True, skipinitialspace=True)
        fields = next(reader, [])
    except csv.Error as error:
        where = at(path, line, text.rfind('"') + 1)
        if "unexpected end" in str(error):
            raise WrongInput(
                f"{where}: a quoted field continues on the next line, or its quote is not closed:"
                f" {text[-60:]!r}; close it, and write the text on one line"
            ) from None
        raise WrongInput(f"{where}: {error}: {text[-60:]!r}; correct the quotes") from None
    return [field.strip() for field in fields]
