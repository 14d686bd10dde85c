"""A source of LIBSVM or VW files: rows that name their features by number."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule
from storage.sources.source import Piece
from storage.sources.text.base import TextSource
from storage.sources.text.blocks import TextFile
from storage.sources.text.lines import checked_lines, lines_of
from storage.sources.text.sparse_fast import sparse_fast
from storage.sources.text.sparse_lines import is_row, sparse_lines


@dataclass
class SparseText(TextSource[Piece]):
    """LIBSVM or VW files, one after the other, as sparse rows. `first` is the number of the first
    feature.
    """

    first: int

    def fast(self, text: bytes) -> Piece | None:
        """The rows of some lines, if they are plain."""
        return sparse_fast(text, self.format, self.rule, self.first, self.n_features)

    def slow(self, text: bytes, path: Path, line: int) -> Piece:
        """The rows of some lines, one by one. Raises `WrongInput`."""
        lines = checked_lines(path, text.split(b"\n"), line)
        return sparse_lines(lines, self.format, path, self.rule, self.first, self.n_features)

    def piece(self, rows: Piece) -> Piece:
        """They are as the source gives them."""
        return rows


def sparse_source(
    paths: Sequence[Path],
    form: str,
    rule: LabelRule,
    origin: dict[str, Any],
    block_bytes: int,
    zero_based: bool | None,
    n_features: int | None,
) -> SparseText:
    """A source of LIBSVM or VW files (`form` is "libsvm" or "vw"), to be read in blocks.

    Feature numbers are counted from 1 in LIBSVM files and from 0 in VW files, unless `zero_based`
    says otherwise. `n_features` is d if it is more than the largest number seen. Raises
    `WrongInput` for a file without rows.
    """
    files = []
    for path in paths:
        if not any(is_row(line, form) for _, line in lines_of(path)):
            raise WrongInput(f"{path}: the file holds no rows")
        files.append(TextFile(path, 0, 1, path.stat().st_size))
    first = (1 if form == "libsvm" else 0) if zero_based is None else (0 if zero_based else 1)
    return SparseText(
        form,
        "sparse",
        n_features,
        [],
        rule.done,
        sum(file.n_bytes for file in files),
        origin,
        tuple(files),
        rule,
        block_bytes,
        first,
    )
