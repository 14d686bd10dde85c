"""A source of LIBSVM or VW files: rows that name their features by number.

Many lines are parsed at once by pyarrow's CSV reader, if every one of them is as plain as can be. A
line `L i:v i:v` is read as three of a CSV file with the delimiter ':', namely `:L`, `i:v` and
`i:v`: the rows without a first field are the labels. What the reader forgives and `sparse_lines`
does not is looked for here; so is what it gives wrong.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.numbers import LabelRule
from storage.sources.source import Piece, Reading
from storage.sources.text.source import (
    TextFile,
    TextSource,
    checked_lines,
    lines_of,
    read_csv,
    with_unix_ends,
)
from storage.sources.text.sparse_lines import LARGEST_INDEX, is_row, sparse_lines

CACHED = 1 << 20  # the reader's block: larger ones are slower, not being in the processor's cache
TO_LINES = bytes.maketrans(b" \t", b"\n\n")
# a line's label, and what is between it and the features
VW_HEAD = re.compile(rb"\n([^\s|]+)[ \t]\|[A-Za-z]*(?=\s|\Z)")


@dataclass(kw_only=True)
class SparseText(TextSource[Piece]):
    """LIBSVM or VW files, one after the other, as sparse rows. `first` is the number of the first
    feature.
    """

    first: int

    def fast(self, text: bytes) -> Piece | None:
        """The rows of some lines, if they are plain."""
        lines = text.count(b"\n")
        plain = with_unix_ends(text)
        if plain is None:
            return None
        plain = b"\n" + plain[:-1]
        heads = lines
        if self.format == "vw":
            plain, heads = VW_HEAD.subn(rb"\n\1", plain)
        # the reader takes hexadecimal numbers
        if heads != lines or b"|" in plain or b"x" in plain or b"X" in plain:
            return None
        plain = plain.replace(b"\n", b"\n:")[1:].translate(TO_LINES)
        types = {"feature": pa.int32(), "value": pa.float64()}
        table = read_csv(plain, ":", list(types), types, [""], CACHED)
        if table is None:
            return None
        # -1 where there is nothing before the ':', NaN where there is nothing after it
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
        labels = _labels(self.rule, values[starts])
        if labels is None:
            return None
        # -0 would be taken for 0
        if (features == 0).any() and (self.first == 1 or b"\n-" in plain):
            return None
        kept = (features >= 0) & (values != 0.0)
        indices = features[kept] - np.int32(self.first)
        indptr = np.append(np.cumsum(kept)[starts], indices.size)
        return Piece(labels, indptr, indices, values[kept])

    def slow(self, text: bytes, path: Path, line: int) -> Piece:
        """The rows of some lines, one by one. Raises `WrongInput`."""
        lines = checked_lines(path, text.split(b"\n"), line)
        return sparse_lines(lines, self.format, path, self.rule, self.first, self.n_features)

    def piece(self, rows: Piece) -> Piece:
        """They are as the source gives them."""
        return rows


def sparse_source(
    paths: Sequence[Path], form: str, reading: Reading, block_bytes: int
) -> SparseText:
    """A source of LIBSVM or VW files (`form` is "libsvm" or "vw"), to be read in blocks.

    Feature numbers are counted from 1 in LIBSVM files and from 0 in VW files, unless the reading
    says otherwise. Its `n_features` is d if it is more than the largest number seen. Raises
    `WrongInput` for a file without rows.
    """
    for path in paths:
        if not any(is_row(line, form) for _, line in lines_of(path)):
            raise WrongInput(f"{path}: the file holds no rows")
    rule = LabelRule(reading.labels)
    zero_based = form == "vw" if reading.zero_based is None else reading.zero_based
    return SparseText(
        format=form,
        layout="sparse",
        paths=tuple(paths),
        n_features=reading.n_features,
        done=rule.done,
        origin={**reading.given(), "format": form},
        files=tuple(TextFile(path, 0, 1, path.stat().st_size) for path in paths),
        rule=rule,
        block_bytes=block_bytes,
        first=0 if zero_based else 1,
    )


def _labels(rule: LabelRule, labels: Array) -> Array | None:
    """The labels by the rule, if it is one for numbers that has them all."""
    if rule.text is None:
        return labels
    if not rule.one_text_a_number:
        return None
    distinct, numbers = np.unique(labels, return_inverse=True)
    ruled = [rule.numbers.get(label) for label in distinct.tolist()]
    return None if None in ruled else np.array(ruled, dtype=np.float64)[numbers]
