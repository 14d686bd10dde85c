"""Tables as sources: the target and feature columns of a table, and what they become: numbers,
parts of dates, categories (one-hot encoding), and classes.
"""

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.arrow import Locate, as_matrix, encoded, is_text, labels, numbers, with_missing
from storage.sources.numbers import (
    CHOOSE,
    DROP_ROWS,
    OTHER_DATE,
    REWRITE,
    LabelRule,
    in_parts,
    is_infinite,
    is_missing,
    is_numeric,
    is_other_number,
    no_number,
    number_in,
)
from storage.sources.roles import Choice
from storage.sources.source import (
    UNDECIDED,
    Fault,
    Malformed,
    ParallelMap,
    Piece,
    Problems,
    Reading,
    Source,
    dense_piece,
    with_classes,
)


@dataclass(frozen=True)
class Parsed:
    """Rows of a table before one-hot encoding: `labels` (n,) and `values` (n, k)."""

    labels: Array
    values: Array
    texts: dict[int, list[str]]


@dataclass(kw_only=True)
class ColumnSource(Source):
    """Base of the sources that read tables.

    Each distinct text of a column of categories is one feature, in sorted order within the column.
    Rows are then sparse, unless at least half of the features are columns of numbers.
    """

    choice: Choice
    rule: LabelRule
    known: dict[int, list[str]] = field(default_factory=dict)

    @abstractmethod
    def rows(self, piece: Any) -> Parsed:
        """Read the rows of a piece."""

    def from_arrow(
        self, columns: Sequence[pa.Array], at: Locate, faults: Iterable[Fault] = ()
    ) -> Parsed:
        """Rows from the columns of the features and, last, the target.

        Raises `Malformed` with every kind of fault, of which some may be known already.
        """
        choice = self.choice
        met = [*faults]
        texts: dict[int, list[str]] = {}

        def column_of(k: int, column: pa.Array) -> Array:
            what = choice.called(k)
            of_target = k == choice.target
            try:
                if k in choice.texts or is_text(column.type):
                    lacking = "" if self.missing or of_target else None
                    codes, known = encoded(column, at, what, CHOOSE, lacking)
                    wrong = np.array([self.fault(k, text) for text in known], object)[codes]
                    for row in np.flatnonzero(wrong).tolist():
                        met.append((row, WrongInput(f"{at(row)}: {what} is {wrong[row]}"), what))
                    if k in choice.texts:
                        texts[k] = known
                        return codes
                    number = self.rule.number if of_target else number_in
                    return np.array([number(text.strip()) for text in known], float)[codes]
                read = partial(labels, rule=self.rule, remedy=DROP_ROWS)
                read = partial(read if of_target else partial(numbers, remedy=CHOOSE), what=what)
                fills = self.missing == "drop" or (self.missing and not of_target)
                return with_missing(read, column, at) if fills else read(column, at)
            except WrongInput as error:
                met.append((0, error, what))
                return np.zeros(len(column))

        *features, target = columns
        values = None if {*choice.texts} - {choice.target} else as_matrix(features)
        if values is None:
            none = np.zeros((len(target), 0))
            values = np.column_stack([none, *map(column_of, choice.features, features)])
        of_target = column_of(choice.target, target).astype(np.float64, copy=False)
        problems = Problems()
        for _, error, column in sorted(met, key=itemgetter(0)):
            problems.add(error, column)
        problems.refuse()
        return Parsed(of_target, values, texts)

    def fault(self, column: int, text: str) -> str:
        """A text that is wrong in its column, and what to do; empty if nothing is."""
        choice = self.choice
        given = choice.given(column)
        is_date = column in choice.dates
        of_target = column == choice.target
        lacks = is_missing(text)
        if column not in choice.texts:
            no_value = column in choice.numeric and not (
                is_numeric(text.strip()) or is_infinite(text)
            )
            as_missing = self.missing == "drop" or (self.missing and not of_target)
            number = self.rule.number(text) if of_target else number_in(text.strip())
            if number is not None or (as_missing and (lacks or (no_value and not of_target))):
                return ""
            if of_target:
                return self.rule.fault(text, DROP_ROWS)
            remedy = (
                f"correct it, or add --categorical {given} for categories, or --numeric {given}"
                f"{'' if self.missing else ' --missing mean'} if a text is a missing value"
            )
            return no_number(text, CHOOSE if no_value else remedy, CHOOSE)
        no_class = of_target and choice.is_no_class(text)
        category = not is_date and not of_target and column not in choice.categorical
        otherwise = f"add --categorical {given}"
        problems = [
            (
                no_class and self.missing != "drop",
                f", no class; {DROP_ROWS}"
                + f"; or if it is a class, {otherwise}" * (text not in ("", "?")),
            ),
            (is_date and lacks and self.missing is None, f"; {CHOOSE}"),
            (
                is_date and not lacks and in_parts(text, choice.dates[column]) is None,
                ", no date or time as in the first rows, such as 2024-12-31 or 2024-12-31 23:59:59;"
                f" correct it, or for categories {otherwise}",
            ),
            (category and is_other_number(text.strip()), f", not a finite number; {REWRITE}"),
            (
                category and OTHER_DATE.fullmatch(text.strip()) is not None,
                ", a date in another order or notation; write it as 2024-12-31, or leave the"
                f" column out with --drop {given}",
            ),
        ]
        said = next((words for is_there, words in problems if is_there), "")
        return said and f"{text[:60]!r}{said}"

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        source = super().surveyed(parallel_map, scratch)
        choice = self.choice
        met: dict[int, dict[str, None]] = {k: {} for k in choice.texts if k not in choice.dates}
        features = tuple(k for k in met if k != choice.target)
        narrow = replace(self, choice=replace(choice, features=features))
        pieces = narrow.pieces(scratch) if met else ()
        for texts in parallel_map(partial(self.texts_of, narrow), pieces):
            for k in met:
                met[k].update(dict.fromkeys(texts[k]))
                choice.refuse_many(self.paths[0], k, met[k])
        known = {k: sorted(texts) for k, texts in met.items()}
        names = {text for text in met.pop(choice.target, ()) if not choice.is_no_class(text)}
        source = with_classes(replace(source, known=known), names)
        if not met:
            return source
        feature_names = choice.feature_names(known)
        n_categories = sum(len(known[k]) for k in met)
        said = ", ".join(f"{choice.called(k)} ({len(known[k]):,})" for k in met)
        return replace(
            source,
            feature_names=feature_names,
            n_features=len(feature_names),
            layout="dense"
            if 2 * n_categories <= len(feature_names) and source.layout == UNDECIDED
            else "sparse",
            done=(*source.done, f"one-hot, values in sorted order: {said}"),
        )

    def texts_of(self, narrow: Self, piece: Any) -> dict[int, list[str]]:
        """`narrow` has only the columns of texts."""
        try:
            texts = narrow.rows(piece).texts
        except Malformed:
            if not getattr(piece, "file", None):  # there, only these columns are
                self.rows(piece)  # raises the problems of all columns
            raise
        self.release(piece)
        return texts

    def read(self, piece: Any) -> Piece:
        """With the choice "drop", rows with a missing number or label are left out."""
        rows = self._in_numbers(self.rows(piece))
        whole = np.ones(rows.labels.size, bool)
        if self.missing == "drop":
            whole = ~(np.isnan(rows.labels) | np.isnan(rows.values).any(axis=1))
        dense = self.layout == "dense" and not {*self.known} - {self.choice.target}
        kept = (
            dense_piece(rows.labels[whole], rows.values[whole])
            if dense
            else self._encoded(rows, whole)
        )
        return replace(kept, n_dropped=int(whole.size - whole.sum()))

    def _in_numbers(self, rows: Parsed) -> Parsed:
        choice = self.choice
        labels = rows.labels
        columns = []
        if choice.target in choice.texts:
            numbers = [self.rule.number(text) for text in rows.texts[choice.target]]
            labels = np.array(numbers, float)[labels.astype(int)]  # None is NaN then
        for k, column in zip(choice.features, rows.values.T, strict=True):
            if parts := choice.dates.get(k):
                missing = [math.nan] * len(parts)
                of_text = [in_parts(text, parts) or missing for text in rows.texts[k]]
                column = np.array(of_text).reshape(-1, len(parts))[column.astype(int)]
            columns.append(column)
        return replace(
            rows, labels=labels, values=np.column_stack(columns) if choice.dates else rows.values
        )

    def _encoded(self, rows: Parsed, whole: Array) -> Piece:
        """Rows are left out where `whole` (n,) is false."""
        values = rows.values[whole]
        offsets = np.zeros(values.shape, int)
        widths = []
        slots = [k for k in self.choice.features for _ in self.choice.dates.get(k, [""])]
        for j, k in enumerate(slots):
            widths.append(len(self.known.get(k, [""])))
            if k in self.known:
                ranks = [bisect_left(self.known[k], text) for text in rows.texts[k]]
                offsets[:, j] = np.array(ranks, int)[values[:, j].astype(int)]
                values[:, j] = 1.0
        indices = offsets + np.cumsum([0, *widths[:-1]])
        labels = rows.labels[whole]
        if self.layout == "dense":
            matrix = np.zeros((labels.size, sum(widths)))
            np.put_along_axis(matrix, indices, values, axis=1)
            return dense_piece(labels, matrix)
        kept = values != 0.0
        indptr = np.append(0, np.cumsum(kept.sum(axis=1)))
        return Piece(labels, indptr, indices[kept].astype(np.int32), values[kept])


def column_fields(
    paths: Sequence[Path], form: str, choice: Choice, reading: Reading
) -> dict[str, Any]:
    name = choice.given(choice.target)
    if choice.target in choice.dates:
        raise WrongInput(
            f"{paths[0]}: the target, {choice.called(choice.target)}, holds dates or times; name"
            f" another --target, or for classes add --categorical {name}"
        )
    rule = LabelRule(reading.labels, f"correct it, or for classes add --categorical {name}")
    as_text = {*choice.texts}
    numeric = [k for k in choice.features if k not in as_text]
    dates = ", ".join(f"{choice.called(k)} as {', '.join(of)}" for k, of in choice.dates.items())
    said = [
        f"target: {choice.called(choice.target)}",
        f"numeric: {len(numeric):,}" + (f" ({choice.few(numeric)})" if numeric else ""),
        *([f"dates and times: {dates}"] if dates else []),
        *choice.notes,
    ]
    without = ((choice.dropped, ""), (choice.index, " (an index)"), (choice.empty, " (no value)"))
    left_out = ", ".join(choice.few(columns) + why for columns, why in without if columns)
    categories = as_text - {choice.target, *choice.dates}
    return {
        "format": form,
        "paths": tuple(paths),
        "layout": UNDECIDED if categories else "dense",
        "n_features": None
        if categories
        else sum(len(choice.dates.get(k, [""])) for k in choice.features),
        "feature_names": [] if categories else choice.feature_names({}),
        "class_names": rule.names,
        "done": (*rule.done, *([f"left out: {left_out}"] if left_out else [])),
        "origin": {**reading.given(), "format": form, "columns": said},
        "rule": rule,
        "choice": choice,
        "missing": reading.missing,
    }
