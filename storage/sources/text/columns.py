"""A source of CSV or space-separated files: rows of as many columns as the first, of which one is
the target.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput
from storage.sources.numbers import MISSING, NUMBER
from storage.sources.one_hot import feature_names, in_words, one_hot_piece
from storage.sources.source import Each, Piece, dense_piece
from storage.sources.text.base import TextSource
from storage.sources.text.blocks import Block
from storage.sources.text.column_choice import Choice, Parsed
from storage.sources.text.column_chooser import Chooser
from storage.sources.text.columns_fast import column_fast
from storage.sources.text.columns_lines import column_lines
from storage.sources.text.lines import checked_lines

MOST_TEXTS = 1_000_000  # different ones, in one column


@dataclass
class ColumnText(TextSource[Parsed]):
    """Files of columns, one after the other: as dense rows; or, one-hot, as sparse ones, each text
    of a column of texts being a feature.

    texts: of each column of texts all that it holds, sorted, once the source is surveyed.
    """

    choice: Choice
    texts: dict[int, list[str]] = field(default_factory=dict)

    def fast(self, text: bytes) -> Parsed | None:
        """The rows of some lines, if they are plain."""
        return column_fast(text, self.choice, self.rule)

    def slow(self, text: bytes, path: Path, line: int) -> Parsed:
        """The rows of some lines, one by one. Raises `WrongInput`."""
        return column_lines(
            checked_lines(path, text.split(b"\n"), line), path, self.choice, self.rule
        )

    def surveyed(self, each: Each, scratch: Path) -> Self:
        """The source that knows all texts of its columns of texts.

        Raises `WrongInput` for a row that is not right, for more than `MOST_TEXTS` texts in a
        column, and for a column that holds numbers but in its first row.
        """
        source = super().surveyed(each, scratch)
        if not self.choice.one_hot:
            return source
        found: dict[int, dict[str, None]] = {k: {} for k in self.choice.texts}
        for texts in each(self.texts_of, self.pieces(scratch)):
            for k in self.choice.texts:
                found[k].update(dict.fromkeys(texts[k]))
                if len(found[k]) > MOST_TEXTS:
                    column = self.choice.called(k)
                    raise WrongInput(
                        f"{self.files[0].path}: {column} holds more than {MOST_TEXTS:,} different"
                        f" texts; leave it out with --drop {k + 1}"
                    )
        for k, met in found.items():
            self._refuse_numbers(k, list(met))
        sorted_texts = {k: sorted(met) for k, met in found.items()}
        names = feature_names(
            (self.choice.feature(k), sorted_texts.get(k)) for k in self.choice.features
        )
        done = (
            *source.done,
            in_words((self.choice.called(k), texts) for k, texts in sorted_texts.items()),
        )
        return replace(
            source, texts=sorted_texts, feature_names=names, n_features=len(names), done=done
        )

    def texts_of(self, block: Block) -> dict[int, list[str]]:
        """The different texts of a block, by column. Raises `WrongInput`."""
        texts = self.rows(block).texts
        self.release(block)
        return texts

    def piece(self, rows: Parsed) -> Piece:
        """The rows, dense; or one-hot: numbers where they are, and a 1 at the feature of each
        text.
        """
        if not self.choice.one_hot:
            return dense_piece(rows.labels, rows.values)
        values, places = rows.values.copy(), np.zeros(rows.values.shape, np.int32)
        for j, k in enumerate(self.choice.features):
            if k in self.choice.texts:
                ranks = np.array([self._rank(k, text) for text in rows.texts[k]], np.int32)
                places[:, j] = ranks[rows.values[:, j].astype(np.int64)]
                values[:, j] = 1.0
        return one_hot_piece(
            rows.labels,
            values,
            places,
            [len(self.texts[k]) if k in self.texts else 1 for k in self.choice.features],
        )

    def _rank(self, column: int, text: str) -> int:
        texts = self.texts[column]
        rank = bisect_left(texts, text)
        if rank == len(texts) or texts[rank] != text:
            raise WrongInput(
                f"{self.choice.called(column)}: {text[:60]!r} was not there when the files were"
                " read first; do not change them meanwhile"
            )
        return rank

    def _refuse_numbers(self, column: int, met: list[str]) -> None:
        """Refuse a column of texts that are numbers, and marks of missing ones; `met` are its
        texts, that of the first row first.
        """
        numbers = [text for text in met if NUMBER.match(text.encode())]
        if numbers and all(NUMBER.match(text.encode()) or text.lower() in MISSING for text in met):
            raise WrongInput(
                f"{self.files[0].path}: {self.choice.called(column)} holds numbers, and {met[0]!r}"
                " in its first row; fill the value in or remove the row"
            )


def column_source(
    paths: Sequence[Path], chooser: Chooser, origin: dict[str, Any], block_bytes: int
) -> ColumnText:
    """A source of files of columns, as `chooser` finds them to be, to be read in blocks. Raises
    `WrongInput` if their first lines are not right.
    """
    files = tuple(chooser.look(path) for path in paths)
    choice = chooser.choice
    assert choice is not None
    done = chooser.rule.done
    if chooser.dropped:
        done = (*done, f"left out: {', '.join(choice.called(k) for k in chooser.dropped)}")
    return ColumnText(
        choice.form,
        "sparse" if choice.one_hot else "dense",
        None if choice.one_hot else len(choice.features),
        [choice.names[k] for k in choice.features] if choice.names and not choice.one_hot else [],
        done,
        sum(file.n_bytes for file in files),
        origin,
        files,
        chooser.rule,
        block_bytes,
        choice,
    )
