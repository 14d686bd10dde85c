"""Source of LIBSVM or VW files, whose rows list features by number.

Blocks of lines are parsed by pyarrow's CSV reader if every line is plain. A line `L i:v i:v` is
rewritten as the three CSV lines `:L`, `i:v` and `i:v` with the delimiter ':'; lines with an empty
first field hold the labels. Input that the reader accepts but `sparse_lines` rejects, or that it
reads differently, is detected here and left to `sparse_lines`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule
from storage.sources.source import Piece, Reading
from storage.sources.text.source import (
    Block,
    TextFile,
    TextSource,
    lines_of,
    read_csv,
    with_unix_ends,
)
from storage.sources.text.sparse_lines import LARGEST_INDEX, namespace_of, sparse_lines
from storage.sources.text.top import begin_of, top_of

MOST_ROWS = 1000  # of which one has a feature, and so a namespace
CACHED = 1 << 20  # the reader's block size; larger blocks exceed the processor cache and are slower
TO_LINES = bytes.maketrans(b" \t", b"\n\n")


@dataclass(kw_only=True)
class SparseText(TextSource[Piece]):
    """Source of LIBSVM or VW files, concatenated in order; rows are sparse."""

    first: int  # number of the first feature in the files, 0 or 1
    namespace: bytes = b""  # of all features of a VW file

    def fast(self, text: bytes) -> Piece | None:
        """Parse LIBSVM or VW lines with pyarrow's CSV reader; None if a line is not plain."""
        lines = text.count(b"\n")
        plain = with_unix_ends(text)
        if plain is None:
            return None
        plain = b"\n" + plain[:-1]
        heads = lines
        if self.format == "vw":
            head = rb"\n([^\s|]+)[ \t]\|" + re.escape(self.namespace) + rb"(?=\s|\Z)"
            plain, heads = re.subn(head, rb"\n\1", plain)
        # the reader would accept hexadecimal numbers
        if heads != lines or b"|" in plain or b"x" in plain or b"X" in plain:
            return None
        plain = plain.replace(b"\n", b"\n:")[1:].translate(TO_LINES)
        types = {"feature": pa.int32(), "value": pa.float64()}
        table = read_csv(plain, ":", types, types, [""], CACHED)
        if table is None:
            return None
        # -1 where the text before the ':' is empty, NaN where the text after it is empty
        features = table.column("feature").fill_null(-1).to_numpy()
        values = table.column("value").to_numpy()
        starts = np.flatnonzero(features < 0)
        ascending = (features[1:] > features[:-1]) | (features[1:] < 0)
        bound = LARGEST_INDEX + 1 if self.n_features is None else self.n_features
        if (
            starts.size != lines
            or not ascending.all()
            or not np.isfinite(values).all()
            or int(features.max()) - self.first >= bound
        ):
            return None
        labels = self.rule.of_numbers(values[starts])
        if labels is None:
            return None
        # feature 0 is an error in a file counted from 1; the reader would also accept -0 as 0
        if (features == 0).any() and (self.first == 1 or b"\n-" in plain):
            return None
        kept = (features >= 0) & (values != 0.0)
        indices = features[kept] - np.int32(self.first)
        indptr = np.append(np.cumsum(kept)[starts], indices.size)
        return Piece(labels, indptr, indices, values[kept])

    def slow(self, lines: Iterable[tuple[int, bytes]], path: Path) -> Piece:
        """Parse LIBSVM or VW lines one by one. Raises `Malformed` with every kind of fault."""
        return sparse_lines(
            lines, self.format, path, self.rule, self.first, self.n_features, self.namespace
        )

    def read(self, piece: Block) -> Piece:
        """Read and parse a block of text. Raises `WrongInput` for a malformed line."""
        return self.rows(piece)


def sparse_source(
    paths: Sequence[Path], form: str, reading: Reading, block_bytes: int
) -> SparseText:
    """Open LIBSVM or VW files (`form` is "libsvm" or "vw") as one source.

    Features are counted from 0 or 1 as `reading.zero_based` says, by default from 1 for LIBSVM and
    from 0 for VW. Raises `WrongInput` if a file has no rows.
    """
    files = [_file(path) for path in paths]
    rule = LabelRule(reading.labels)
    zero_based = form == "vw" if reading.zero_based is None else reading.zero_based
    return SparseText(
        format=form,
        layout="sparse",
        paths=tuple(paths),
        n_features=reading.n_features,
        done=rule.done,
        origin={**reading.given(), "format": form},
        files=tuple(files),
        rule=rule,
        block_bytes=block_bytes,
        first=0 if zero_based else 1,
        namespace=_namespace(paths[0]) if form == "vw" else b"",
    )


def _file(path: Path) -> TextFile:
    """A LIBSVM or VW file and where its rows begin; raises `WrongInput` if it has none."""
    comments, number, line = top_of(path)
    if not line:
        raise WrongInput(f"{path}: the file holds no rows")
    return TextFile(path, begin_of(path, number), number, path.stat().st_size, len(comments))


def _namespace(path: Path) -> bytes:
    """The namespace of a VW file: that of the first of its first rows that has features."""
    bodies = (line.partition(b"|")[2] for _, line in islice(lines_of(path), MOST_ROWS))
    found = next((namespace_of(body).partition(b":")[0] for body in bodies if body.strip()), b"")
    return b"" if found.isdigit() else found
