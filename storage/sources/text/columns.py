"""Source of CSV or space-separated files, whose rows all have the columns of the first row.

One column is the target. Blocks of lines are parsed by pyarrow's CSV reader if every line is plain.
Redundant quotes and spaces are removed first. Input that the reader accepts but `columns_lines`
rejects is detected here and left to `columns_lines`.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.features import ColumnSource, add_texts, left_out
from storage.sources.numbers import MISSING, NUMBER, LabelRule
from storage.sources.source import ParallelMap, Piece, Reading, dense_piece
from storage.sources.text.columns_lines import Choice, Chooser, Parsed, column_lines
from storage.sources.text.source import (
    BYTE_ORDER_MARK,
    Block,
    TextSource,
    checked_lines,
    read_csv,
    with_unix_ends,
)

LARGEST_TEXT = 2**31 - 2  # the reader counts bytes in 32 bits
# rare characters that also separate columns; text with them is left to the slow parser
SPACES = b"\x0b\x0c\x1c\x1d\x1e\x1f"
NEWLINE, QUOTE, COMMA = b'\n",'


@dataclass(kw_only=True)
class ColumnText(TextSource[Parsed], ColumnSource):
    """Source of CSV or space-separated files, concatenated in order.

    Rows are dense, or sparse if text columns are one-hot encoded. `choice` describes the columns.
    """

    choice: Choice

    def fast(self, text: bytes) -> Parsed | None:
        """Parse lines of a table with pyarrow's CSV reader; None if a line is not plain."""
        plain = with_unix_ends(text)
        if plain is None or b"\0" in plain or not _is_utf8(plain):
            return None
        plain = without_quotes(plain) if self.choice.form == "csv" else single_spaced(plain)
        # the reader would drop a byte order mark at the beginning
        if not plain or plain.startswith(BYTE_ORDER_MARK) or len(plain) >= LARGEST_TEXT:
            return None
        choice, of_texts = self.choice, self.choice.texts
        if self.rule.text is not None:
            of_texts = (*of_texts, choice.target)
        types = {
            str(k): pa.string() if k in of_texts else pa.float64()
            for k in (*choice.features, choice.target)
        }
        names = [str(k) for k in range(choice.width)]
        delimiter = "," if choice.form == "csv" else " "
        table = read_csv(plain, delimiter, names, types, [], len(plain) + 1)
        if table is None:
            return None
        values = np.empty((table.num_rows, len(choice.features)))
        texts: dict[int, list[str]] = {}
        for position, k in enumerate(choice.features):
            if k in choice.texts:
                values[:, position], texts[k] = _encode_texts(table.column(str(k)))
            else:
                values[:, position] = table.column(str(k)).to_numpy()
        labels = _apply_rule(table.column(str(choice.target)), self.rule)
        if labels is None or not np.isfinite(values).all() or not np.isfinite(labels).all():
            return None
        return Parsed(labels, values, texts)

    def slow(self, text: bytes, path: Path, line: int) -> Parsed:
        """Parse lines of a table one by one. Raises `WrongInput` for the first malformed line."""
        lines = checked_lines(path, text.split(b"\n"), line)
        return column_lines(lines, path, self.choice, self.rule)

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        """Copy of this source that knows the distinct texts of its text columns.

        Raises `WrongInput` for a malformed row, for too many distinct texts in a column, and for a
        column that holds a text in its first row and numbers after it.
        """
        source = super().surveyed(parallel_map, scratch)
        choice, path = self.choice, self.files[0].path
        if not choice.one_hot:
            return source
        met: dict[int, dict[str, None]] = {k: {} for k in choice.texts}
        for texts in parallel_map(self.texts_of, self.pieces(scratch)):
            for k in choice.texts:
                add_texts(met[k], texts[k], path, choice.called(k), k + 1)
        for k in choice.texts:
            _refuse_numbers(path, choice.called(k), list(met[k]))
        names = choice.names or [choice.called(k) for k in range(choice.width)]
        return source.with_texts(met, ((k, names[k], choice.called(k)) for k in choice.features))

    def texts_of(self, block: Block) -> dict[int, list[str]]:
        """Distinct texts of the text columns in a block of lines, by column.

        Raises `WrongInput` for a malformed row.
        """
        texts = self.rows(block).texts
        self.release(block)
        return texts

    def piece(self, rows: Parsed) -> Piece:
        """Convert parsed table rows to a piece: dense, or sparse with a 1 at the feature of each
        text.

        Raises `WrongInput` for a text that was absent during the survey.
        """
        if not self.choice.one_hot:
            return dense_piece(rows.labels, rows.values)
        values, offsets = rows.values.copy(), np.zeros(rows.values.shape, np.int32)
        for j, k in enumerate(self.choice.features):
            if k in self.known:
                known = self.known[k]
                ranks = [bisect_left(known, text) for text in rows.texts[k]]
                for rank, text in zip(ranks, rows.texts[k], strict=True):
                    if known[rank : rank + 1] != [text]:
                        raise WrongInput(
                            f"{self.choice.called(k)}: {text[:60]!r} was not there when the files"
                            " were read first; do not change them meanwhile"
                        )
                offsets[:, j] = np.array(ranks, np.int32)[rows.values[:, j].astype(np.int64)]
                values[:, j] = 1.0
        return self.one_hot(self.choice.features, rows.labels, values, offsets)


def _refuse_numbers(path: Path, column: str, texts: list[str]) -> None:
    """Raise `WrongInput` for a column of numbers whose first row is a text.

    `texts` are the column's distinct texts, beginning with that of the first row. The column is
    numeric if all of them are numbers or marks of missing values.
    """
    others = [text for text in texts if not NUMBER.match(text.encode())]
    if len(others) < len(texts) and all(text.lower() in MISSING for text in others):
        raise WrongInput(
            f"{path}: {column} holds numbers, and {texts[0]!r} in its first row; fill the value in"
            " or remove the row"
        )


def column_source(
    paths: Sequence[Path], form: str, reading: Reading, block_bytes: int
) -> ColumnText:
    """Open CSV or space-separated files as one source.

    Parameters
    ----------
    paths : sequence of Path
        Files with the same columns.
    form : {"csv", "space"}
        Their format.
    reading : Reading
        Options that say which column is the target, which are dropped, and so on.
    block_bytes : int
        Approximate bytes of text that are parsed at once.

    Raises
    ------
    WrongInput
        If the first lines of a file are malformed.
    """
    rule = LabelRule(reading.labels)
    chooser = Chooser(form, rule, reading)
    files = tuple(chooser.inspect(path) for path in paths)
    choice = chooser.choice
    assert choice is not None
    return ColumnText(
        format=form,
        paths=tuple(paths),
        layout="sparse" if choice.one_hot else "dense",
        n_features=None if choice.one_hot else len(choice.features),
        feature_names=[choice.names[k] for k in choice.features]
        if choice.names and not choice.one_hot
        else [],
        done=(*rule.done, *left_out(choice.names, choice.dropped)),
        origin={**reading.given(), "format": form},
        files=files,
        rule=rule,
        block_bytes=block_bytes,
        choice=choice,
    )


def without_quotes(text: bytes) -> bytes | None:
    """Remove redundant quotes from CSV text.

    Returns None unless every pair of quotes encloses a whole field without a comma.
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
    """Normalize space-separated text to single spaces between columns and none around lines.

    Returns None if characters other than spaces and tabs may separate columns.
    """
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


def _apply_rule(column: pa.ChunkedArray, rule: LabelRule) -> Array | None:
    if rule.text is None:
        return column.to_numpy()
    numbers, texts = _encode_texts(column)
    try:
        return np.array([rule(text.encode(), Path(), 0, "") for text in texts])[numbers]
    except WrongInput:
        return None


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode("utf-8"))
    except UnicodeDecodeError:
        return False
