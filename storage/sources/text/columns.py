"""Source of CSV or space-separated files, whose rows all have the columns of the first row.

Blocks of plain lines are parsed by pyarrow's CSV reader. Input that it accepts but
`ColumnText.slow` rejects is detected here and left to `slow`.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.errors import WrongInput, refuse_first
from storage.sources.arrow import is_text
from storage.sources.features import ColumnSource, Parsed, column_fields
from storage.sources.numbers import MISSING, at, is_numeric
from storage.sources.roles import Choice, chosen_columns, with_kinds
from storage.sources.source import Fault, Problems, Reading
from storage.sources.text.header import MOST_SHOWN, column_of, is_header, marked_names
from storage.sources.text.source import (
    BYTE_ORDER_MARK,
    MOST_FIELD,
    TextFile,
    TextSource,
    Unusual,
    lines_of,
    read_csv,
    refuse_long,
    separator_of,
    top_of,
    with_unix_ends,
)

MOST_COLUMNS = 1_000_000  # each may become a feature, named in the manifest
# lines, rows, values, and characters of each, that are looked at
MOST_LINES = 100_000
MOST_ROWS = 1000
MOST_VALUES = 1_000_000
# the reader takes microseconds for each column of a block: of many columns, blocks are larger
WIDE, WIDE_BYTES = 20_000, 8_000_000
# rare characters that also separate columns; text with them is left to the slow parser
SPACES = b"\x0b\x0c\x1c\x1d\x1e\x1f"
# as the reader sees missing values; other spellings are left to the slow parser
NULLS = [
    space + spelled
    for mark in MISSING
    for spelled in sorted({mark, mark.upper(), mark.capitalize(), "NaN"} if mark else {""})
    for space in ("", " ")
]


@dataclass(kw_only=True)
class ColumnText(TextSource[Parsed], ColumnSource):
    def fast(self, text: bytes) -> Parsed:
        choice = self.choice
        plain = with_unix_ends(text)
        plain.decode("utf-8")
        blanks = choice.separator == " "
        plain = single_spaced(plain) if blanks else without_quotes(plain, choice.separator)
        other_nan = self.missing and re.search(rb"-nan|nan\(", plain, re.IGNORECASE)
        # the reader would drop a byte order mark at the beginning
        marked = plain.startswith(BYTE_ORDER_MARK)
        if not plain or marked or other_nan or b"\0" in plain:
            raise Unusual
        of_texts = {*choice.texts} if self.rule.text is None else {*choice.texts, choice.target}
        types = {
            str(k): pa.string() if k in of_texts else pa.float64()
            for k in (*choice.features, choice.target)
        }
        names = map(str, range(choice.width))
        nulls = NULLS if self.missing else []
        table = read_csv(plain, choice.separator, names, types, nulls, len(plain) + 1)
        columns = [table.column(name).combine_chunks() for name in types]
        trimmed = [pc.utf8_trim_whitespace(one) if is_text(one.type) else one for one in columns]
        return self.from_arrow(trimmed, str)

    def fields(self, line: bytes, number: int, path: Path) -> list[str]:
        return fields_of(line, number, path, self.choice.separator)

    def slow(self, lines: Iterable[tuple[int, bytes]], path: Path) -> Parsed:
        width = self.choice.width
        faults: list[Fault] = []
        rows: list[list[str]] = []
        numbers: list[int] = []
        try:
            for number, line in lines:
                try:
                    fields = self.fields(line, number, path)
                except WrongInput as error:
                    faults.append((len(rows), error, ""))
                    continue
                if len(fields) == width:
                    rows.append(fields)
                    numbers.append(number)
                elif fields:
                    wrong = (
                        f"{at(path, number)}: {len(fields)} columns where the first line has"
                        f" {width}; correct or remove the line"
                    )
                    faults.append((len(rows), WrongInput(wrong), ""))
        except WrongInput as error:
            faults.append((len(rows), error, ""))
        columns = [
            pa.array([fields[k] for fields in rows], pa.string())
            for k in (*self.choice.features, self.choice.target)
        ]
        return self.from_arrow(columns, lambda row: at(path, numbers[row]), faults)


def column_source(
    paths: Sequence[Path], form: str, reading: Reading, block_bytes: int
) -> ColumnText:
    """The columns of the first file apply to all."""
    choice, first = inspect(paths[0], form, reading, None, len(paths) == 1)
    files = [first, *(inspect(path, form, reading, choice)[1] for path in paths[1:])]
    fields = column_fields(paths, form, choice, reading)
    return ColumnText(
        **fields,
        files=tuple(files),
        block_bytes=max(block_bytes, WIDE_BYTES * (choice.width // WIDE)),
        between=separators_of(choice.separator),
    )


def without_quotes(text: bytes, separator: str) -> bytes:
    """Each pair of quotes has to enclose a whole field without separators."""
    of = separator.encode()
    pairs = re.findall(rb'"(?<![^%b\n]")[^"%b\n]*"(?=[%b\n])' % (of, of, of), text)
    if 2 * len(pairs) != text.count(b'"'):
        raise Unusual
    return text.translate(None, b'"')


def single_spaced(text: bytes) -> bytes:
    if not text.isascii() or any(byte in text for byte in SPACES):
        raise Unusual
    text = re.sub(rb"[ \t]+", b" ", text)
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")


def separators_of(separator: str) -> tuple[bytes, ...]:
    return (b" ", b"\t") if separator == " " else (separator.encode(),)


def fields_of(line: bytes, number: int, path: Path, separator: str) -> list[str]:
    """No fields if the line is blank."""
    separators = separators_of(separator)
    refuse_long(path, number, line, "field", MOST_FIELD, separators)
    if sum(map(line.count, separators)) >= MOST_COLUMNS:
        raise WrongInput(
            f"{at(path, number)}: more than {MOST_COLUMNS:,} columns; write rows of so many"
            " features as LIBSVM text, without their zeros"
        )
    text = decoded(line, number, path)
    if separator == " ":
        return text.split()
    fields = text.split(separator)
    if '"' in text:
        try:
            reader = csv.reader([text], delimiter=separator, strict=True, skipinitialspace=True)
            fields = next(reader, [])
        except csv.Error as error:
            where = at(path, number, text.rfind('"') + 1)
            if "unexpected end" in str(error):
                raise WrongInput(
                    f"{where}: a quoted field continues on the next line, or its quote is not"
                    f" closed: {text[-60:]!r}; close it, and write the text on one line"
                ) from None
            raise WrongInput(f"{where}: {error}: {text[-60:]!r}; correct the quotes") from None
    fields = [field.strip() for field in fields]
    return [] if fields == [""] else fields


def decoded(line: bytes, number: int, path: Path) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongInput(
            f"{at(path, number, error.start + 1)}: {error}; save the file as UTF-8, for example:"
            " iconv -f CP1252 -t UTF-8 FILE > NEW"
        ) from None


def inspect(
    path: Path, form: str, reading: Reading, known: Choice | None, alone: bool = False
) -> tuple[Choice, TextFile]:
    """Decide the roles of the columns from a file's first lines, and where its rows begin."""
    comments, first, line = top_of(path)
    line = line or comments[0][1]
    separator = known.separator if known else separator_of(path, line)
    separator = " " if form == "space" else separator
    split = partial(fields_of, path=path, separator=separator)
    width = len(split(line, first))
    first, marked = marked_names(comments, first, width, split, reading)
    lines = ((number, line) for number, line in lines_of(path) if 0 < first <= number)
    rows = ((k, row) for k, line in islice(lines, MOST_LINES) if (row := split(line, k)))
    first, fields = next(rows, (0, []))
    refuse_first(
        [
            (not fields, f"{path}: the file holds no rows"),
            (
                known is None and len(fields) < 2,
                f"{at(path, first)}: only one column; a row needs a target and at least one"
                " feature, separated by commas, semicolons, tabs or blanks, and this is"
                f" {''.join(fields)[:60]!r}",
            ),
        ]
    )
    problems = Problems()
    most = max(3, min(MOST_ROWS, MOST_VALUES // width))
    some = islice(problems.until_fault(rows), most)
    seen = [[text[:MOST_SHOWN] for text in row] for _, row in some]
    whole = alone and len(seen) < most and not problems.met
    marked = marked if reading.header or any(map(is_numeric, fields)) else []
    again = known is not None and known.names == tuple(fields)
    header = not marked and (again or is_header(path, first, fields, seen, reading))
    if header and not seen:
        problems.refuse()
    names, seen = (fields, seen) if header else (marked, [fields, *seen])
    refuse_first(
        [
            (
                bool(names)
                and known is not None
                and known.names not in (tuple(names), tuple(names) if header else ()),
                f"{at(path, first)}: the columns differ from those of the first file; give files"
                " with the same columns, or if this is a row, add --no-header",
            ),
            (not seen, f"{path}: the file holds no rows"),
        ]
    )
    if known is None:
        column = partial(column_of, seen)
        known = chosen_columns(
            path, names, len(fields), reading, column, whole=whole, separator=separator
        )
        known = with_kinds(known, column, reading.labels is not None)
    first += header
    n_comments = sum(number < first for number, _ in comments) - bool(marked)
    return known, TextFile(path, first, n_comments)
