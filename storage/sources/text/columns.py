"""Source of CSV or space-separated files, whose rows all have the columns of the first row.

One column is the target. Blocks of lines are parsed by pyarrow's CSV reader if every line is plain.
Redundant quotes and spaces are removed first. Input that the reader accepts but `columns_lines`
rejects is detected here and left to `columns_lines`.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from koco_stream.types import Array
from storage.sources.features import ColumnSource, Parsed, column_fields
from storage.sources.numbers import MISSING, LabelRule, is_missing, is_other_number
from storage.sources.source import Reading
from storage.sources.text.columns_lines import between, column_lines, inspect
from storage.sources.text.source import (
    BYTE_ORDER_MARK,
    MOST_FIELD,
    TextSource,
    read_csv,
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
