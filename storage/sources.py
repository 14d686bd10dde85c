"""Reading source files: LIBSVM, VW, CSV and space-separated text, plain or compressed. Whatever is not exactly right is refused with its
place."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from koco_stream.cache import private_folder
from koco_stream.errors import WrongInput
from storage.column_choice import Chooser
from storage.column_files import column_source
from storage.source import PIECE_BYTES, Source, one_by_one
from storage.sparse_files import sparse_source
from storage.table import Table, in_layout
from storage.text import NUMBER, OPENERS, LabelRule, at, lines_of

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


def source_of(paths: Sequence[Path], reading: Reading = AS_SEEN, block_bytes: int = PIECE_BYTES) -> Source:
    """The source that these files are, one after the other; text is read in blocks of about `block_bytes`.

    Its layout is its own: `reading.layout` is for who puts the pieces together. Raises `WrongInput` if the files are not there or their
    first lines are not right, and for an option that says nothing about files of their format.
    """
    for number, path in enumerate(paths):
        if not path.is_file():
            raise WrongInput(f"{path}: no such file; give the source with --from FILE")
        if path in paths[:number]:
            raise WrongInput(f"{path}: given twice; its rows would be there twice")
    forms = [reading.format or guess_format(path) for path in paths]
    form = forms[0]
    for path, other in zip(paths, forms, strict=True):
        if other != form:
            raise WrongInput(f"{path} is {other} and {paths[0]} is {form}; name the format of both with --format")
    if form not in FORMATS:
        raise WrongInput(f"--format {form} is not one of {', '.join(FORMATS)}")
    rule = LabelRule(reading.labels)
    origin = {**reading.given(), "files": [{"file": path.name} for path in paths], "format": form}
    if form in ("csv", "space"):
        numbered = {"--n-features": reading.n_features, "--zero-based or --one-based": reading.zero_based}
        _refuse(paths[0], form, "LIBSVM and VW files", numbered)
        chooser = Chooser(form, rule, reading.target, reading.drop, reading.one_hot, reading.header)
        return column_source(paths, chooser, origin, block_bytes)
    named = {"--target": reading.target, "--drop": reading.drop or None, "--one-hot": reading.one_hot or None}
    _refuse(paths[0], form, "the columns of a CSV file", {**named, "--header or --no-header": reading.header})
    return sparse_source(paths, form, rule, origin, block_bytes, reading.zero_based, reading.n_features)


def read_sources(paths: Sequence[Path], reading: Reading = AS_SEEN) -> Table:
    """Files, one after the other, as one table in memory. Raises `WrongInput` naming the file, the line, the text there and the remedy."""
    with tempfile.TemporaryDirectory(dir=private_folder("unpacked")) as scratch:
        source = source_of(paths, reading).surveyed(one_by_one, Path(scratch))
        pieces = [source.read(piece) for piece in source.pieces(Path(scratch))]
    ends = np.cumsum([0, *(piece.indptr[-1] for piece in pieces)])
    indptr = [piece.indptr[1:] + end for piece, end in zip(pieces, ends[:-1], strict=True)]
    indices = np.concatenate([piece.indices for piece in pieces])
    d = source.n_features if source.n_features is not None else int(indices.max(initial=-1)) + 1
    table = Table(
        np.concatenate([piece.labels for piece in pieces]),
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        indices,
        np.concatenate([piece.values for piece in pieces]),
        d,
        source.layout,
        source.format,
        source.feature_names,
        source.done,
    )
    return in_layout(table, reading.layout)


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
        raise WrongInput(f"{at(path, number)}: neither LIBSVM, VW nor CSV: {shown!r}; name it with --format {', '.join(FORMATS)}")
    raise WrongInput(f"{path}: the file holds no rows")
