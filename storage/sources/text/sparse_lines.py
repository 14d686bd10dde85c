"""Line-by-line parser of LIBSVM and VW text, which reports the position of every error.

It is slow and defines what `SparseText.fast` must return.
"""

import math
import re
from array import array
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule, at, number_of
from storage.sources.source import Piece

LARGEST_INDEX = 2**31 - 2
TOKEN = re.compile(rb"\S+")


def sparse_lines(
    lines: Iterable[tuple[int, bytes]],
    form: str,
    path: Path,
    rule: LabelRule,
    first: int,
    n_features: int | None,
) -> Piece:
    """Parse the rows of a LIBSVM or VW file from (number, line) pairs.

    `form` is "libsvm" or "vw"; `first` is the number of the first feature. Raises `WrongInput` for
    a malformed line or a feature beyond `n_features`.
    """
    labels, indptr, indices, values = array("d"), array("q", [0]), array("i"), array("d")
    parse = libsvm_line if form == "libsvm" else vw_line
    bound = LARGEST_INDEX + 1 if n_features is None else n_features
    for number, line in lines:
        if not is_row(line, form):
            continue
        label, row = parse(line, path, number, first, rule)
        if row and row[-1][0] >= bound:
            name = str(row[-1][0] + first)
            where = at(path, number, _column_of(line, name.encode()))
            raise WrongInput(
                f"{where}: feature {name} is beyond --n-features {bound}; give a larger number"
            )
        labels.append(label)
        for index, value in row:
            if value != 0.0:
                indices.append(index)
                values.append(value)
        indptr.append(len(indices))
    return Piece(np.array(labels), np.array(indptr), np.array(indices), np.array(values))


def is_row(line: bytes, form: str) -> bool:
    """Whether a line is a row, that is, neither blank nor a comment."""
    text = line.strip()
    return bool(text) and not (form == "libsvm" and text.startswith(b"#"))


def libsvm_line(
    text: bytes, path: Path, number: int, first: int, rule: LabelRule
) -> tuple[float, list[tuple[int, float]]]:
    """Parse a LIBSVM line `label index:value …` to (label, (feature from 0, value) pairs).

    Indices increase and start at `first`; a comment may follow after "#". Raises `WrongInput` for
    another syntax.
    """
    tokens = [(match[0], match.start() + 1) for match in TOKEN.finditer(text.split(b"#", 1)[0])]
    label = rule(tokens[0][0], path, number, "the label", tokens[0][1])
    row = []
    last = -1
    for token, column in tokens[1:]:
        name, colon, value = token.partition(b":")
        if not colon or not name.isdigit():
            extra = (
                "; query ids are not supported, remove them"
                if name == b"qid"
                else "; a feature is written index:value"
            )
            raise WrongInput(f"{at(path, number, column)}: {_shown(token)} is not a feature{extra}")
        index = _index(name, path, number, first, column)
        if index <= last:
            raise WrongInput(
                f"{at(path, number, column)}: feature {index + first} comes after {last + first};"
                " sort each line by feature, each one once"
            )
        last = index
        what = f"the value of feature {index + first}"
        row.append((index, number_of(value, path, number, what, column=column + len(name) + 1)))
    return label, row


def vw_line(
    text: bytes, path: Path, number: int, first: int, rule: LabelRule
) -> tuple[float, list[tuple[int, float]]]:
    """Parse a VW line `label |namespace feature:value …` to (label, (feature from 0, value) pairs).

    Features are numbers. A missing value is 1, and the values of a repeated feature are added.
    Raises `WrongInput` for another syntax.
    """
    head, bar, body = text.partition(b"|")
    begin = len(head) + 1
    if not bar:
        raise WrongInput(
            f"{at(path, number)}: no '|' between the label and the features in {_shown(text)};"
            " write label | index:value …"
        )
    fields = [(match[0], match.start() + 1) for match in TOKEN.finditer(head)]
    if len(fields) not in (1, 2) or (len(fields) == 2 and not fields[1][0].startswith(b"'")):
        raise WrongInput(
            f"{at(path, number, 1)}: {_shown(head)} before '|' is not one label; importance weights"
            " and bases are not supported"
        )
    label = rule(fields[0][0], path, number, "the label", fields[0][1])
    if b"|" in body:
        where = at(path, number, begin + body.index(b"|") + 1)
        raise WrongInput(
            f"{where}: more than one namespace; merge them into one with feature numbers of its own"
        )
    named = not body[:1].isspace()
    tokens = [(match[0], begin + match.start() + 1) for match in TOKEN.finditer(body)]
    if named and tokens and (b":" in tokens[0][0] or tokens[0][0].isdigit()):
        raise WrongInput(
            f"{at(path, number, tokens[0][1])}: {_shown(tokens[0][0])} right after '|' is a"
            " namespace, a weight after ':', which is not supported; put a space after '|' if it"
            " is a feature"
        )
    row: dict[int, float] = {}
    for token, column in tokens[1:] if named else tokens:
        name, colon, value = token.partition(b":")
        if not name.isdigit():
            raise WrongInput(
                f"{at(path, number, column)}: feature {_shown(name)} is not a number from 0 to"
                f" {LARGEST_INDEX}; number the features first"
            )
        index = _index(name, path, number, first, column)
        what = f"the value of feature {index + first}"
        amount = (
            number_of(value, path, number, what, column=column + len(name) + 1) if colon else 1.0
        )
        row[index] = row.get(index, 0.0) + amount
        if not math.isfinite(row[index]):
            where = at(path, number, column)
            raise WrongInput(
                f"{where}: the values of feature {index + first} add up to {row[index]}; make them"
                " smaller"
            )
    return label, sorted(row.items())


def _index(name: bytes, path: Path, number: int, first: int, column: int) -> int:
    digits = name.lstrip(b"0") or b"0"
    if len(digits) > 10 or int(digits) - first > LARGEST_INDEX:
        shown = digits.decode()[:60]
        raise WrongInput(
            f"{at(path, number, column)}: feature {shown} is beyond {LARGEST_INDEX + first}; hash"
            " the features to fewer"
        )
    if int(digits) < first:
        raise WrongInput(
            f"{at(path, number, column)}: feature 0 in a file counted from 1; if it counts from 0,"
            " add --zero-based"
        )
    return int(digits) - first


def _column_of(line: bytes, name: bytes) -> int:
    found = re.search(rb"(?<!\S)0*" + name + rb"(?![^\s:])", line)
    return found.start() + 1 if found else 1


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace").strip()[:60])
