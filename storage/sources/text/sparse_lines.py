"""Line-by-line parser of LIBSVM and VW text, which reports the position of every error.

It is slow and defines what `SparseText.fast` must return.
"""

import math
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule, at, number_of
from storage.sources.problems import Problems
from storage.sources.source import Piece, refuse_first

LARGEST_INDEX = 2**31 - 2
TOKEN = re.compile(rb"\S+")
VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")  # what differs between faults of one kind
Token = tuple[bytes, int]  # a word of a line, and its column from 1


def sparse_lines(
    lines: Iterable[tuple[int, bytes]],
    form: str,
    path: Path,
    rule: LabelRule,
    first: int,
    n_features: int | None,
    namespace: bytes = b"",
) -> Piece:
    """Parse the rows of a LIBSVM or VW file from (number, line) pairs.

    `form` is "libsvm" or "vw"; `first` is the number of the first feature, and `namespace` that of
    all features. Raises `Malformed` with every kind of fault: malformed lines, and features beyond
    `n_features`.
    """
    labels, indptr, indices, values = array("d"), array("q", [0]), array("i"), array("d")
    problems = Problems()
    for number, line in problems.until_fault(lines):
        if not is_row(line, form):
            continue
        try:
            label, row = sparse_row(line, form, path, number, first, rule, namespace)
            _check_bound(row, line, path, number, first, n_features)
        except WrongInput as error:
            # the message without its position and what is quoted there
            kind = VARYING.sub("", str(error).removeprefix(str(path)))
            problems.add(error, kind)
            continue
        labels.append(label)
        for index, value in row:
            if value != 0.0:
                indices.append(index)
                values.append(value)
        indptr.append(len(indices))
    problems.refuse()
    return Piece(np.array(labels), np.array(indptr), np.array(indices), np.array(values))


def _check_bound(
    row: list[tuple[int, float]],
    line: bytes,
    path: Path,
    number: int,
    first: int,
    n_features: int | None,
) -> None:
    """Raise `WrongInput` if the last feature of a row is beyond `n_features`."""
    bound = LARGEST_INDEX + 1 if n_features is None else n_features
    if row and row[-1][0] >= bound:
        name = str(row[-1][0] + first)
        found = re.search(rb"(?<!\S)0*" + name.encode() + rb"(?![^\s:])", line)
        raise WrongInput(
            f"{at(path, number, found.start() + 1 if found else 1)}: feature {name} is beyond"
            f" --n-features {bound}; give a larger number"
        )


def is_row(line: bytes, form: str) -> bool:
    """Whether a line is a row, that is, neither blank nor a comment."""
    text = line.strip()
    return bool(text) and not (form == "libsvm" and text.startswith(b"#"))


def sparse_row(
    line: bytes,
    form: str,
    path: Path,
    number: int,
    first: int,
    rule: LabelRule,
    namespace: bytes = b"",
) -> tuple[float, list[tuple[int, float]]]:
    """Parse a row to (label, (feature from 0, value) pairs in the order of the features).

    A LIBSVM row is `label index:value …`; its indices increase, and a comment may follow after "#".
    A VW row is `label |namespace feature:value …` with numbers as features; a missing value is 1,
    and the values of a repeated feature are added. Raises `WrongInput` for another syntax.
    """
    is_vw = form == "vw"
    if is_vw:
        tokens = _vw_tokens(line, path, number, namespace)
    else:
        tokens = _tokens(line.split(b"#", 1)[0])
    text, column = next(tokens)
    label = rule(text, path, number, "the label", column)
    row: dict[int, float] = {}
    last = -1
    for token, column in tokens:
        name, colon, value = token.partition(b":")
        if not name.isdigit() or not (colon or is_vw):
            wrong = f"{_shown(token)} is not a feature; a feature is written index:value"
            if is_vw:
                wrong = (
                    f"feature {_shown(name)} is not a number from 0 to {LARGEST_INDEX}; number the"
                    " features first"
                )
            elif name == b"qid":
                wrong = (
                    f"{_shown(token)} is not a feature; query ids are not supported, remove them"
                )
            raise WrongInput(f"{at(path, number, column)}: {wrong}")
        index = _index(name, path, number, first, column)
        if index <= last and not is_vw:
            raise WrongInput(
                f"{at(path, number, column)}: feature {index + first} comes after {last + first};"
                " sort each line by feature, each one once"
            )
        last = index
        amount = 1.0
        if colon:
            what = f"the value of feature {index + first}"
            amount = number_of(value, path, number, what, column=column + len(name) + 1)
        row[index] = row.get(index, 0.0) + amount
        if not math.isfinite(row[index]):
            raise WrongInput(
                f"{at(path, number, column)}: the values of feature {index + first} add up to"
                f" {row[index]}; make them smaller"
            )
    return label, sorted(row.items())


def namespace_of(body: bytes) -> bytes:
    """The namespace that the text after '|' begins with; empty if it has none."""
    return b"" if body[:1].isspace() else body.split(None, 1)[0]


def _vw_tokens(text: bytes, path: Path, number: int, namespace: bytes) -> Iterator[Token]:
    """The label of a VW line and its features. Raises `WrongInput` if it has anything else."""
    head, bar, body = text.partition(b"|")
    begin, fields = len(head) + 1, list(_tokens(head))
    tagged = len(fields) == 2 and fields[1][0].startswith(b"'")
    refuse_first(
        [
            (
                not bar,
                f"{at(path, number)}: no '|' between the label and the features in {_shown(text)};"
                " write label | index:value …",
            ),
            (
                len(fields) != 1 and not tagged,
                f"{at(path, number, 1)}: {_shown(head)} before '|' is not one label; importance"
                " weights and bases are not supported",
            ),
            (
                not tagged and not head[-1:].isspace(),
                f"{at(path, number, 1)}: {_shown(head)} right before '|' is a tag, and there is no"
                " label; put a space before '|' if it is one",
            ),
            (
                b"|" in body,
                f"{at(path, number, begin + body.find(b'|') + 1)}: more than one namespace; merge"
                " them into one, with different feature numbers",
            ),
        ]
    )
    tokens = _tokens(body, begin)
    nameless = (b"", begin + 1)
    name, column = nameless if body[:1].isspace() else next(tokens, nameless)
    refuse_first(
        [
            (
                b":" in name or name.isdigit(),
                f"{at(path, number, column)}: {_shown(name)} right after '|' is a namespace, and"
                " weights of namespaces (after ':') are not supported; put a space after '|' if it"
                " is a feature",
            ),
            (
                name != namespace and bool(body[len(name) :].strip()),
                f"{at(path, number, column)}: namespace {_shown(name)}, and {_shown(namespace)} in"
                " the first rows; their features are different ones: number them in one namespace",
            ),
        ]
    )
    return chain(fields[:1], tokens)


def _tokens(text: bytes, before: int = 0) -> Iterator[Token]:
    """Tokens of a text that follows after `before` bytes of its line."""
    return ((match[0], before + match.start() + 1) for match in TOKEN.finditer(text))


def _index(name: bytes, path: Path, number: int, first: int, column: int) -> int:
    digits = name.lstrip(b"0") or b"0"
    if len(digits) > 10 or int(digits) - first > LARGEST_INDEX:
        raise WrongInput(
            f"{at(path, number, column)}: feature {digits.decode()[:60]} is beyond"
            f" {LARGEST_INDEX + first}; hash the features to fewer numbers"
        )
    if int(digits) < first:
        raise WrongInput(
            f"{at(path, number, column)}: feature 0 in a file counted from 1; if it counts from 0,"
            " add --zero-based"
        )
    return int(digits) - first


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace").strip()[:60])
