"""CSV and space-separated text by pyarrow's CSV reader: many lines at once, if every one of them is
as plain as can be.

Quotes and superfluous spaces are taken away first, if they change nothing. What the reader forgives
and `columns_lines` does not is looked for here.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.numbers import LabelRule
from storage.sources.text.column_choice import Choice, Parsed
from storage.sources.text.lines import BYTE_ORDER_MARK

LARGEST_TEXT = 2**31 - 2  # the reader counts bytes in 32 bits
SPACES = b"\x0b\x0c\x1c\x1d\x1e\x1f"  # that separate columns like a space: left to the slow reader
NEWLINE, SPACE, QUOTE, COMMA = b'\n ",'


def column_fast(text: bytes, choice: Choice, rule: LabelRule) -> Parsed | None:
    """The rows of some lines, or None if `columns_lines` has to look at them."""
    returns = text.count(b"\r")
    if (
        b"\0" in text
        or returns != text.count(b"\r\n")
        or not _is_utf8(text)
        or len(text) >= LARGEST_TEXT
    ):
        return None
    if returns:
        text = text.translate(None, b"\r")
    plain = without_quotes(text) if choice.form == "csv" else single_spaced(text)
    if not plain or plain.startswith(BYTE_ORDER_MARK):  # which the reader would leave out
        return None
    table = _read(plain, choice, choice.target if rule.text is not None else None)
    if table is None:
        return None
    values = np.empty((table.num_rows, len(choice.features)))
    texts: dict[int, list[str]] = {}
    for place, k in enumerate(choice.features):
        if k in choice.texts:
            values[:, place], texts[k] = _numbered(table.column(str(k)))
        else:
            values[:, place] = table.column(str(k)).to_numpy()
    labels = _labels(table.column(str(choice.target)), rule)
    if labels is None or not np.isfinite(values).all() or not np.isfinite(labels).all():
        return None
    return Parsed(labels, values, texts)


def without_quotes(text: bytes) -> bytes | None:
    """CSV text without its quotes, or None if they do more than stand around a whole field that has
    no comma.
    """
    if b'"' not in text:
        return text
    codes = np.frombuffer(b"\n" + text, np.uint8)
    quotes = np.flatnonzero(codes == QUOTE)
    opening, closing = quotes[0::2], quotes[1::2]
    if opening.size != closing.size:
        return None
    breaks = (codes == COMMA) | (codes == NEWLINE)
    if not breaks[opening - 1].all() or not breaks[closing + 1].all():
        return None
    before = np.cumsum(breaks)
    return text.translate(None, b'"') if (before[opening] == before[closing]).all() else None


def single_spaced(text: bytes) -> bytes | None:
    """Lines whose columns are separated by one space each, without spaces around; None if something
    else may separate columns.
    """
    if not text.isascii() or any(byte in text for byte in SPACES):
        return None
    text = text.replace(b"\t", b" ")
    codes = np.frombuffer(b"\n" + text, np.uint8)
    space, newline = codes == SPACE, codes == NEWLINE
    idle = space[1:-1] & (space[2:] | newline[2:])
    if idle.any():
        text = codes[1:][~np.append(idle, False)].tobytes()
    return text.replace(b"\n ", b"\n").removeprefix(b" ")


def _read(text: bytes, choice: Choice, text_target: int | None) -> pa.Table | None:
    """The chosen columns, each called by its number."""
    types = {
        str(k): pa.string() if k in choice.texts or k == text_target else pa.float64()
        for k in (*choice.features, choice.target)
    }
    try:
        return csv.read_csv(
            pa.py_buffer(text),
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=len(text) + 1,
                column_names=[str(k) for k in range(choice.width)],
            ),
            parse_options=csv.ParseOptions(
                delimiter="," if choice.form == "csv" else " ", quote_char=False
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[],
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid:
        return None


def _numbered(column: pa.ChunkedArray) -> tuple[Array, list[str]]:
    """Each row's text as a number, and the texts: stripped, in the order in which they are met."""
    coded = column.combine_chunks().dictionary_encode()
    numbers: dict[str, int] = {}
    place = [
        numbers.setdefault(text.strip(), len(numbers)) for text in coded.dictionary.to_pylist()
    ]
    return np.array(place)[coded.indices.to_numpy()], list(numbers)


def _labels(column: pa.ChunkedArray, rule: LabelRule) -> Array | None:
    if rule.text is None:
        return column.to_numpy()
    numbers, texts = _numbered(column)
    try:
        return np.array([rule(text.encode(), Path(), 0, "") for text in texts])[numbers]
    except WrongInput:
        return None


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
