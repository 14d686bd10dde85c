"""Which source files are: LIBSVM, VW, CSV and space-separated text, plain or compressed, Parquet,
or documents. Whatever is not exactly right is refused with its place.
"""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.cache import private_folder
from storage.sources.compressed import OPENERS
from storage.sources.documents.source import documents_source
from storage.sources.numbers import NUMBER, LabelRule, at
from storage.sources.parquet.source import parquet_source
from storage.sources.source import PIECE_BYTES, Source, one_by_one
from storage.sources.table import Table
from storage.sources.text.column_chooser import Chooser
from storage.sources.text.columns import column_source
from storage.sources.text.lines import lines_of
from storage.sources.text.sparse import sparse_source

TEXTS = ("libsvm", "vw", "csv", "space")
FORMATS = (*TEXTS, "parquet", "documents")
ARCHIVES = (".tar", ".tgz", *(f".tar{ending}" for ending in OPENERS))


@dataclass(frozen=True)
class Reading:
    """How sources are read. `format` None is seen from the first line.

    target: the column of labels, by name or by number from 1. labels: the rule by which their texts
    become numbers (`LabelRule`). drop: columns to leave out. one_hot: columns of texts become one
    feature a value. header: whether the first line holds names. n_features: d of a LIBSVM or VW
    file, if its largest feature does not occur. zero_based: whether such a file counts from 0.
    strip: what is taken away from documents: "headers", "footers", "quotes".
    """

    format: str | None = None
    target: str | None = None
    labels: str | None = None
    drop: tuple[str, ...] = ()
    one_hot: bool = False
    header: bool | None = None
    n_features: int | None = None
    zero_based: bool | None = None
    strip: tuple[str, ...] = ()

    def given(self) -> dict[str, Any]:
        """What differs from the defaults, for the manifest."""
        mine = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if getattr(self, f.name) != f.default
        }
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in mine.items()
        }


AS_SEEN = Reading()


def source_of(
    paths: Sequence[Path], reading: Reading = AS_SEEN, block_bytes: int = PIECE_BYTES
) -> Source:
    """The source that these files are, one after the other; text is read in blocks of about
    `block_bytes`.

    Raises `WrongInput` if the files are not there or their first lines are not right, and for an
    option that says nothing about files of their format.
    """
    for number, path in enumerate(paths):
        if not path.is_file() and not (path.is_dir() and reading.format == "documents"):
            raise WrongInput(f"{path}: no such file; give the source with --from FILE")
        if path in paths[:number]:
            raise WrongInput(f"{path}: given twice; its rows would be there twice")
    forms = [reading.format or guess_format(path) for path in paths]
    form = forms[0]
    for path, other in zip(paths, forms, strict=True):
        if other != form:
            raise WrongInput(
                f"{path} is {other} and {paths[0]} is {form}; name the format of both with --format"
            )
    if form not in FORMATS:
        raise WrongInput(f"--format {form} is not one of {', '.join(FORMATS)}")
    columns = {
        "--target": reading.target,
        "--drop": reading.drop or None,
        "--one-hot": reading.one_hot or None,
    }
    lines = {
        "--header or --no-header": reading.header,
        "--zero-based or --one-based": reading.zero_based,
    }
    if form != "documents":
        _refuse(paths[0], form, "documents", {"--strip": reading.strip or None})
    if form == "documents":
        _refuse(paths[0], form, "files of rows", {**columns, **lines, "--labels": reading.labels})
        if len(paths) > 1:
            raise WrongInput(
                f"{paths[1]}: documents are one folder or one archive; give that alone"
            )
        return documents_source(paths[0], strip=reading.strip, n_features=reading.n_features)
    if form == "parquet":
        _refuse(paths[0], form, "text", lines)
        names: dict[str, Any] = {
            "target": reading.target,
            "drop": reading.drop,
            "one_hot": reading.one_hot,
        }
        return parquet_source(paths, labels=reading.labels, n_features=reading.n_features, **names)
    rule = LabelRule(reading.labels)
    origin = {**reading.given(), "files": [{"file": path.name} for path in paths], "format": form}
    if form in ("csv", "space"):
        numbered = {
            "--n-features": reading.n_features,
            "--zero-based or --one-based": reading.zero_based,
        }
        _refuse(paths[0], form, "LIBSVM and VW files", numbered)
        chooser = Chooser(form, rule, reading.target, reading.drop, reading.one_hot, reading.header)
        return column_source(paths, chooser, origin, block_bytes)
    _refuse(
        paths[0],
        form,
        "the columns of a CSV file",
        {**columns, "--header or --no-header": reading.header},
    )
    return sparse_source(
        paths, form, rule, origin, block_bytes, reading.zero_based, reading.n_features
    )


def read_sources(paths: Sequence[Path], reading: Reading = AS_SEEN) -> Table:
    """Files, one after the other, as one table in memory. Raises `WrongInput` naming the file, the
    line, the text there and the remedy.
    """
    with tempfile.TemporaryDirectory(dir=private_folder("unpacked")) as scratch:
        source = source_of(paths, reading).surveyed(one_by_one, Path(scratch))
        pieces = [source.read(piece) for piece in source.pieces(Path(scratch))]
    ends = np.cumsum([0, *(piece.indptr[-1] for piece in pieces)])
    indptr = [piece.indptr[1:] + end for piece, end in zip(pieces, ends[:-1], strict=True)]
    indices = np.concatenate([piece.indices for piece in pieces])
    d = source.n_features if source.n_features is not None else int(indices.max(initial=-1)) + 1
    return Table(
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


def _refuse(path: Path, form: str, what_for: str, options: dict[str, Any]) -> None:
    """Raise `WrongInput` for the first option that was given (is not None) though it says nothing
    about files of this format.
    """
    for option, value in options.items():
        if value is not None:
            raise WrongInput(
                f"{path}: {option} is for {what_for}, and this file is {form}; leave it out"
            )


def guess_format(path: Path) -> str:
    """The format, from the name, the first bytes or the first line. Raises `WrongInput` for an
    empty file or one that is none of these.
    """
    if path.is_dir() or path.name.lower().endswith(ARCHIVES):
        return "documents"
    with path.open("rb") as handle:
        if (
            handle.read(4) == b"PAR1" or path.suffix.lower() == ".parquet"
        ):  # by its name too, so that a damaged one is told as such
            return "parquet"
    bare = path.with_suffix("") if path.suffix in OPENERS else path
    named = {".csv": "csv", ".vw": "vw", ".svm": "libsvm", ".libsvm": "libsvm"}.get(
        bare.suffix.lower()
    )
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
        if re.match(rb"\S+(\s+\d+:\S+)+\s*(#.*)?\Z", text) or NUMBER.match(
            text.partition(b"#")[0].strip()
        ):
            return "libsvm"
        if all(NUMBER.match(token) for token in text.split()):
            return "space"
        shown = text[:60].decode("utf-8", "replace")
        raise WrongInput(
            f"{at(path, number)}: neither LIBSVM, VW nor CSV: {shown!r}; name it with --format"
            f" {', '.join(FORMATS)}"
        )
    raise WrongInput(f"{path}: the file holds no rows")
