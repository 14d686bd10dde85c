"""Reading source files: LIBSVM, VW and CSV text, plain or compressed. Whatever is not exactly right is refused with its place."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import math
import re
import zlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput, nearest
from koco_stream.linalg import Array

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
LARGEST_INDEX = 2**31 - 2


@dataclass(frozen=True)
class Table:
    """A source, read: labels (n,), rows as canonical CSR (indptr (n + 1,), indices, values), or dense (then `indices` is empty and each
    row has `n_features` values)."""

    labels: Array
    indptr: Array
    indices: Array
    values: Array
    n_features: int
    layout: str
    format: str
    feature_names: list[str]


def read_source(path: Path, *, format: str | None = None, target: str | None = None, zero_based: bool = False) -> Table:
    """Read a file. `target` is a CSV column's name or number from 1 (by default the last).

    Raises `WrongInput` naming the file, the line, the text found there and the remedy.
    """
    if not path.is_file():
        raise WrongInput(f"{path}: no such file; give the source with --from FILE")
    form = format or guess_format(path)
    if form == "csv":
        return read_csv(path, target)
    if target is not None:
        raise WrongInput(f"{path}: --target names a column of a CSV file, and this file is {form}; leave it out")
    return read_sparse(path, form, zero_based)


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line without its end) of a plain or compressed file. Raises `WrongInput` if it is cut short or damaged."""
    number = 0
    opener = OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rb") as handle:
            for number, line in enumerate(handle, 1):
                if b"\0" in line:
                    raise WrongInput(f"{path}, line {number}: a NUL byte; this is not text, or it is compressed under a wrong name")
                if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                    line = line[3:]
                yield number, line.rstrip(b"\r\n")
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise WrongInput(f"{path}: cut short or damaged after line {number} ({error}); fetch the file again") from None
    except OSError as error:
        if path.suffix == ".bz2" and "Invalid data stream" in str(error):
            raise WrongInput(f"{path}: damaged after line {number} ({error}); fetch the file again") from None
        raise


def guess_format(path: Path) -> str:
    """csv, vw or libsvm, from the name or the first line. Raises `WrongInput` for an empty file or one that is none of these."""
    bare = path.with_suffix("") if path.suffix in OPENERS else path
    named = {".csv": "csv", ".vw": "vw", ".svm": "libsvm", ".libsvm": "libsvm"}.get(bare.suffix.lower())
    for number, line in lines_of(path):
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        if named:
            return named
        if b"|" in text:
            return "vw"
        if b"," in text:
            return "csv"
        if re.match(rb"\S+(\s+\d+:\S+)*\s*(#.*)?\Z", text):
            return "libsvm"
        shown = text[:60].decode("utf-8", "replace")
        raise WrongInput(f"{path}, line {number}: neither LIBSVM, VW nor CSV: {shown!r}; name it with --format libsvm, vw or csv")
    raise WrongInput(f"{path}: the file holds no rows")


def number_of(token: bytes, path: Path, line: int, what: str) -> float:
    """A finite decimal number. Raises `WrongInput` for anything else, also for what Python's float() would forgive."""
    if NUMBER.match(token):
        value = float(token)
        if math.isfinite(value):
            return value
    shown = token.decode("utf-8", "replace")[:60]
    remedy = (
        "remove the row or fill the value in" if shown.lower().lstrip("+-") in ("nan", "inf", "infinity", "", "?", "na") else "correct it"
    )
    raise WrongInput(f"{path}, line {line}: {what} is {shown!r}, not a finite number; {remedy}")


def read_sparse(path: Path, form: str, zero_based: bool) -> Table:
    """A LIBSVM or VW file. Feature numbers are counted from 1 in LIBSVM files unless `zero_based`, from 0 in VW files."""
    labels, indptr, indices, values = array("d"), array("q", [0]), array("i"), array("d")
    parse = libsvm_line if form == "libsvm" else vw_line
    first = 0 if zero_based or form == "vw" else 1
    for number, line in lines_of(path):
        text = line.strip()
        if not text or (form == "libsvm" and text.startswith(b"#")):
            continue
        label, row = parse(text, path, number, first)
        labels.append(label)
        for index, value in row:
            if value != 0.0:
                indices.append(index)
                values.append(value)
        indptr.append(len(indices))
    if not labels:
        raise WrongInput(f"{path}: the file holds no rows")
    numbers = np.frombuffer(indices, np.int32) if indices else np.zeros(0, np.int32)
    return Table(
        np.array(labels),
        np.array(indptr),
        numbers,
        np.array(values),
        int(numbers.max(initial=-1)) + 1,
        "sparse",
        form,
        [],
    )


def libsvm_line(text: bytes, path: Path, number: int, first: int) -> tuple[float, list[tuple[int, float]]]:
    """`label index:value …`, indices increasing from `first`; a comment may follow after #."""
    tokens = text.split(b"#", 1)[0].split()
    label = number_of(tokens[0], path, number, "the label")
    row = []
    last = -1
    for token in tokens[1:]:
        name, colon, value = token.partition(b":")
        if not colon or not name.isdigit():
            shown = token.decode("utf-8", "replace")[:60]
            extra = "; query ids are not supported, remove them" if name == b"qid" else "; a feature is written index:value"
            raise WrongInput(f"{path}, line {number}: {shown!r} is not a feature{extra}")
        index = int(name) - first
        if index < 0:
            raise WrongInput(f"{path}, line {number}: feature 0 in a file counted from 1; if it counts from 0, add --zero-based")
        if index > LARGEST_INDEX:
            raise WrongInput(f"{path}, line {number}: feature {int(name)} is beyond {LARGEST_INDEX + first}; hash the features to fewer")
        if index <= last:
            raise WrongInput(
                f"{path}, line {number}: feature {int(name)} comes after {last + first}; sort each line by feature, each one once"
            )
        last = index
        row.append((index, number_of(value, path, number, f"the value of feature {int(name)}")))
    return label, row


def vw_line(text: bytes, path: Path, number: int, first: int) -> tuple[float, list[tuple[int, float]]]:
    """`label |namespace feature:value …` with numbers as features; a value left out is 1; a feature given twice counts twice."""
    head, bar, body = text.partition(b"|")
    if not bar:
        raise WrongInput(f"{path}, line {number}: no '|' between the label and the features")
    fields = head.split()
    if len(fields) not in (1, 2) or (len(fields) == 2 and not fields[1].startswith(b"'")):
        shown = head.decode("utf-8", "replace").strip()
        raise WrongInput(f"{path}, line {number}: {shown!r} before '|' is not one label; importance weights and bases are not supported")
    label = number_of(fields[0], path, number, "the label")
    if b"|" in body:
        raise WrongInput(f"{path}, line {number}: more than one namespace; merge them into one with feature numbers of its own")
    named = not body[:1].isspace()
    tokens = body.split()[1:] if named else body.split()
    row: dict[int, float] = {}
    for token in tokens:
        name, colon, value = token.partition(b":")
        if not name.isdigit() or int(name) > LARGEST_INDEX:
            shown = name.decode("utf-8", "replace")[:60]
            raise WrongInput(
                f"{path}, line {number}: feature {shown!r} is not a number from 0 to {LARGEST_INDEX}; number the features first"
            )
        index = int(name)
        amount = number_of(value, path, number, f"the value of feature {index}") if colon else 1.0
        row[index] = row.get(index, 0.0) + amount
    return label, sorted(row.items())


def read_csv(path: Path, target: str | None) -> Table:
    """A CSV file of numbers, with or without a header. The target column gives the label, all others the features."""
    labels, values = array("d"), array("d")
    names: list[str] = []
    width = column = 0
    lines = csv.reader(_decoded(path), strict=True)
    try:
        for fields in lines:
            line = lines.line_num
            if not fields or fields == [""]:
                continue
            if width == 0:
                width = len(fields)
                if width < 2:
                    raise WrongInput(
                        f"{path}, line {line}: one column only; a row needs a target and at least one feature, separated by commas"
                    )
                if not all(NUMBER.match(f.strip().encode()) for f in fields):
                    names = [f.strip() for f in fields]
                    column = target_column(path, target, names, width)
                    continue
                column = target_column(path, target, names, width)
            if len(fields) != width:
                raise WrongInput(f"{path}, line {line}: {len(fields)} columns where the first line has {width}; correct or remove the line")
            for k, text in enumerate(fields):
                where = f"column {names[k]!r}" if names else f"column {k + 1}"
                value = number_of(text.strip().encode(), path, line, where)
                (labels if k == column else values).append(value)
    except csv.Error as error:
        raise WrongInput(f"{path}, line {lines.line_num}: {error}; correct the quotes") from None
    if not labels:
        raise WrongInput(f"{path}: the file holds no rows")
    features = [name for k, name in enumerate(names) if k != column]
    indptr = np.arange(0, (len(labels) + 1) * (width - 1), width - 1)
    return Table(np.array(labels), indptr, np.zeros(0, np.int32), np.array(values), width - 1, "dense", "csv", features)


def target_column(path: Path, target: str | None, names: list[str], width: int) -> int:
    """The place of the target column, from 0. Raises `WrongInput` if there is no such column."""
    if target is None:
        return width - 1
    if target in names:
        return names.index(target)
    if target.isdigit() and 1 <= int(target) <= width:
        return int(target) - 1
    if names:
        raise WrongInput(f"{path}: --target {target}: no such column{nearest(target, names)}")
    raise WrongInput(f"{path}: --target {target}: the file has no header; give the column's number, 1 to {width}")


def _decoded(path: Path) -> Iterator[str]:
    for number, line in lines_of(path):
        try:
            yield line.decode("utf-8") + "\n"
        except UnicodeDecodeError as error:
            raise WrongInput(f"{path}, line {number}: {error}; save the file as UTF-8") from None
