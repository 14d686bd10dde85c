"""Reading source files: LIBSVM, VW, CSV and space-separated text, plain or compressed. Whatever is not exactly right is refused with its
place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from koco_stream.errors import WrongInput
from storage.column_files import read_columns
from storage.sparse_files import read_sparse
from storage.table import Table
from storage.text import NUMBER, OPENERS, LabelRule, lines_of

FORMATS = ("libsvm", "vw", "csv", "space")


@dataclass(frozen=True)
class Reading:
    """How sources are read. `format` None is seen from the first line.

    target: the column of labels, by name or by number from 1. labels: the rule by which their texts become numbers (`LabelRule`).
    drop: columns to leave out. one_hot: columns of texts become one feature a value. header: whether the first line holds names.
    n_features: d of a LIBSVM or VW file, if its largest feature does not occur. zero_based: whether such a file counts from 0.
    layout: "dense" or "sparse", if not the source's own.
    """

    format: str | None = None
    target: str | None = None
    labels: str | None = None
    drop: tuple[str, ...] = ()
    one_hot: bool = False
    header: bool | None = None
    n_features: int | None = None
    zero_based: bool | None = None
    layout: str | None = None

    def given(self) -> dict[str, Any]:
        """What differs from the defaults, for the manifest."""
        mine = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in mine.items()}


AS_SEEN = Reading()


def read_sources(paths: Sequence[Path], reading: Reading = AS_SEEN) -> Table:
    """Read files, one after the other, as one table.

    Raises `WrongInput` naming the file, the line, the text found there and the remedy.
    """
    for number, path in enumerate(paths):
        if not path.is_file():
            raise WrongInput(f"{path}: no such file; give the source with --from FILE")
        if path in paths[:number]:
            raise WrongInput(f"{path}: given twice; its rows would be there twice")
    forms = [reading.format or guess_format(path) for path in paths]
    for path, form in zip(paths, forms, strict=True):
        if form != forms[0]:
            raise WrongInput(f"{path} is {form} and {paths[0]} is {forms[0]}; name the format of both with --format")
    rule = LabelRule(reading.labels)
    if forms[0] in ("csv", "space"):
        _refuse(
            paths[0],
            forms[0],
            "LIBSVM and VW files",
            {"--n-features": reading.n_features, "--zero-based or --one-based": reading.zero_based},
        )
        table = read_columns(
            paths, forms[0], rule, target=reading.target, drop=reading.drop, one_hot=reading.one_hot, header=reading.header
        )
    else:
        columns = {"--target": reading.target, "--drop": reading.drop or None, "--one-hot": reading.one_hot or None}
        _refuse(paths[0], forms[0], "the columns of a CSV file", {**columns, "--header or --no-header": reading.header})
        table = read_sparse(paths, forms[0], rule, reading.zero_based, reading.n_features)
    return table


def _refuse(path: Path, form: str, what_for: str, options: dict[str, Any]) -> None:
    """Raise `WrongInput` for the first option that was given (is not None) though it says nothing about files of this format."""
    for option, value in options.items():
        if value is not None:
            raise WrongInput(f"{path}: {option} is for {what_for}, and this file is {form}; leave it out")


def guess_format(path: Path) -> str:
    """csv, space, vw or libsvm, from the name or the first line. Raises `WrongInput` for an empty file or one that is none of these."""
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
        if all(NUMBER.match(token) for token in text.split()):
            return "space"
        shown = text[:60].decode("utf-8", "replace")
        raise WrongInput(f"{path}, line {number}: neither LIBSVM, VW nor CSV: {shown!r}; name it with --format {', '.join(FORMATS)}")
    raise WrongInput(f"{path}: the file holds no rows")


def source_of(paths: Sequence[Path], reading: Reading) -> Table:
    """The files as one source."""
    return replace(read_sources(paths, reading), files=tuple(paths), origin=reading.given())
