"""LIBSVM and VW text: rows that name their features by number."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from storage.table import Table
from storage.text import LabelRule, lines_of, number_of

LARGEST_INDEX = 2**31 - 2


def read_sparse(paths: Sequence[Path], form: str, rule: LabelRule, zero_based: bool | None, n_features: int | None) -> Table:
    """LIBSVM or VW files, one after the other. Feature numbers are counted from 1 in LIBSVM files and from 0 in VW files, unless
    `zero_based` says otherwise. `n_features` is d if it is more than the largest number seen.

    Raises `WrongInput` for a line that is not right, or if a feature is beyond `n_features`.
    """
    labels, indptr, indices, values = array("d"), array("q", [0]), array("i"), array("d")
    parse = libsvm_line if form == "libsvm" else vw_line
    first = (1 if form == "libsvm" else 0) if zero_based is None else (0 if zero_based else 1)
    bound = LARGEST_INDEX + 1 if n_features is None else n_features
    for path in paths:
        before = len(labels)
        for number, line in lines_of(path):
            text = line.strip()
            if not text or (form == "libsvm" and text.startswith(b"#")):
                continue
            label, row = parse(text, path, number, first, rule)
            if row and row[-1][0] >= bound:
                raise WrongInput(
                    f"{path}, line {number}: feature {row[-1][0] + first} is beyond --n-features {bound}; give a larger number"
                )
            labels.append(label)
            for index, value in row:
                if value != 0.0:
                    indices.append(index)
                    values.append(value)
            indptr.append(len(indices))
        if len(labels) == before:
            raise WrongInput(f"{path}: the file holds no rows")
    numbers = np.frombuffer(indices, np.int32) if indices else np.zeros(0, np.int32)
    d = int(numbers.max(initial=-1)) + 1 if n_features is None else n_features
    return Table(np.array(labels), np.array(indptr), numbers, np.array(values), d, "sparse", form, [], rule.done)


def libsvm_line(text: bytes, path: Path, number: int, first: int, rule: LabelRule) -> tuple[float, list[tuple[int, float]]]:
    """`label index:value …`, indices increasing from `first`; a comment may follow after #."""
    tokens = text.split(b"#", 1)[0].split()
    label = rule(tokens[0], path, number, "the label")
    row = []
    last = -1
    for token in tokens[1:]:
        name, colon, value = token.partition(b":")
        if not colon or not name.isdigit():
            shown = token.decode("utf-8", "replace")[:60]
            extra = "; query ids are not supported, remove them" if name == b"qid" else "; a feature is written index:value"
            raise WrongInput(f"{path}, line {number}: {shown!r} is not a feature{extra}")
        index = _index(name, path, number, first)
        if index <= last:
            raise WrongInput(
                f"{path}, line {number}: feature {int(name)} comes after {last + first}; sort each line by feature, each one once"
            )
        last = index
        row.append((index, number_of(value, path, number, f"the value of feature {int(name)}")))
    return label, row


def vw_line(text: bytes, path: Path, number: int, first: int, rule: LabelRule) -> tuple[float, list[tuple[int, float]]]:
    """`label |namespace feature:value …` with numbers as features; a value left out is 1; a feature given twice counts twice."""
    head, bar, body = text.partition(b"|")
    if not bar:
        raise WrongInput(f"{path}, line {number}: no '|' between the label and the features")
    fields = head.split()
    if len(fields) not in (1, 2) or (len(fields) == 2 and not fields[1].startswith(b"'")):
        shown = head.decode("utf-8", "replace").strip()
        raise WrongInput(f"{path}, line {number}: {shown!r} before '|' is not one label; importance weights and bases are not supported")
    label = rule(fields[0], path, number, "the label")
    if b"|" in body:
        raise WrongInput(f"{path}, line {number}: more than one namespace; merge them into one with feature numbers of its own")
    named = not body[:1].isspace()
    tokens = body.split()
    if named and tokens and (b":" in tokens[0] or tokens[0].isdigit()):
        shown = tokens[0].decode("utf-8", "replace")[:60]
        raise WrongInput(
            f"{path}, line {number}: {shown!r} right after '|' is a namespace, a weight after ':', which is not supported; put a space "
            "after '|' if it is a feature"
        )
    tokens = tokens[1:] if named else tokens
    row: dict[int, float] = {}
    for token in tokens:
        name, colon, value = token.partition(b":")
        if not name.isdigit():
            shown = name.decode("utf-8", "replace")[:60]
            raise WrongInput(
                f"{path}, line {number}: feature {shown!r} is not a number from 0 to {LARGEST_INDEX}; number the features first"
            )
        index = _index(name, path, number, first)
        amount = number_of(value, path, number, f"the value of feature {int(name)}") if colon else 1.0
        row[index] = row.get(index, 0.0) + amount
        if not math.isfinite(row[index]):
            raise WrongInput(f"{path}, line {number}: the values of feature {int(name)} add up to {row[index]}; make them smaller")
    return label, sorted(row.items())


def _index(name: bytes, path: Path, number: int, first: int) -> int:
    if len(name.lstrip(b"0")) > 10:
        shown = name.decode()[:60]
        raise WrongInput(f"{path}, line {number}: feature {shown} is beyond {LARGEST_INDEX + first}; hash the features to fewer")
    index = int(name) - first
    if index < 0:
        raise WrongInput(f"{path}, line {number}: feature 0 in a file counted from 1; if it counts from 0, add --zero-based")
    if index > LARGEST_INDEX:
        raise WrongInput(f"{path}, line {number}: feature {int(name)} is beyond {LARGEST_INDEX + first}; hash the features to fewer")
    return index
