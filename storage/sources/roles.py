"""The roles of a table's columns: which is the target, which are features, and what they hold."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, filterfalse
from pathlib import Path

from koco_stream.errors import WrongInput, nearest, refuse_first
from storage.sources.numbers import is_infinite, is_missing, is_number, is_numeric, parts_of
from storage.sources.source import MOST_TOLD, Reading, few

# names that pandas gives to an index, of which the last may also be a feature's
STORED = re.compile(r"__index_level_\d+__")
INDEX = re.compile(r"|Unnamed: 0(\.\d+)?|index|level_\d+")
# limits on the distinct texts of one column, each of which becomes a feature, named in the
# manifest: unless --one-hot says that there may be many, and then; and on those of the target
MOST_CATEGORIES = 100
MOST_TEXTS = 1_000_000
MOST_CLASSES = 200


@dataclass(frozen=True)
class Choice:
    """Roles of the columns of a table, counted from 0 here and from 1 in messages."""

    width: int
    names: tuple[str, ...]
    target: int
    features: tuple[int, ...]
    dropped: tuple[int, ...]
    texts: tuple[int, ...]
    one_hot: bool
    index: tuple[int, ...] = ()
    empty: tuple[int, ...] = ()
    categorical: tuple[int, ...] = ()
    numeric: tuple[int, ...] = ()
    dates: dict[int, tuple[str, ...]] = field(default_factory=dict)
    separator: str = ","
    notes: tuple[str, ...] = ()

    def called(self, column: int) -> str:
        return f"column {self.names[column]!r}" if self.names else f"column {column + 1}"

    def given(self, column: int) -> str:
        return shlex.quote(self.names[column]) if self.names else f"{column + 1}"

    def few(self, columns: Sequence[int]) -> str:
        return few([self.called(column) for column in columns])

    def feature_names(self, known: dict[int, list[str]]) -> list[str]:
        if not (self.names or self.dates or known):
            return []
        found: list[str] = []
        for k in self.features:
            name = self.names[k] if self.names else self.called(k)
            found += [f"{name}={text}" for text in known.get(k, ())]
            found += [f"{name}.{part}" for part in self.dates.get(k, ())]
            found += [] if k in known or k in self.dates else [name]
        return found

    def is_no_class(self, text: str) -> bool:
        return text in ("", "?") or (self.target not in self.categorical and is_missing(text))

    def refuse_many(self, path: Path, column: int, texts: Collection[str]) -> None:
        name = self.given(column)
        n_texts = len(texts)
        mixed = n_texts > MOST_CATEGORIES and any(map(is_number, texts))
        drop = f"leave it out with --drop {name}"
        many = f"{path}: {self.called(column)} holds more than {{:,}} different texts; "
        target = column == self.target
        refuse_first(
            [
                (
                    target and n_texts > MOST_CLASSES,
                    f"{many.format(MOST_CLASSES)}name another --target, with fewer classes"
                    + f"; or if it holds numbers, add --numeric {name}" * mixed,
                ),
                (n_texts > MOST_TEXTS, many.format(MOST_TEXTS) + drop),
                (
                    n_texts > MOST_CATEGORIES and not (target or self.one_hot),
                    f"{many.format(MOST_CATEGORIES)}{drop}; or make a feature of each with"
                    " --one-hot; or hash these with --one-hot --layout sparse --hash-bits 18"
                    + f"; or if it holds numbers, add --numeric {name} --missing mean"
                    * mixed,
                ),
            ]
        )


def chosen_columns(
    path: Path,
    names: Sequence[str],
    width: int,
    reading: Reading,
    column: Callable[[int], Sequence[str]],
    stored: Collection[str] = (),
    whole: bool = False,
    separator: str = ",",
) -> Choice:
    """Select the target and the features among the `width` columns of a table."""
    named_one = partial(_column, path, names, width)
    target = None if reading.target is None else named_one("--target", reading.target)
    dropped, categorical, numeric = said = [
        tuple(named_one(f"--{option}", name) for name in getattr(reading, option))
        for option in ("drop", "categorical", "numeric")
    ]
    kept = {k: name for k, name in enumerate(names) if k not in dropped}
    first = {name: k for k, name in reversed(kept.items())}
    refuse_first(
        (
            k != first[name],
            f"{path}: two columns are called {name!r}; rename one, or leave one out with --drop"
            f" {k + 1}",
        )
        for k, name in kept.items()
    )
    told = Counter(chain(*said))
    named = [k for k, name in enumerate(names) if INDEX.fullmatch(name) and (name or k == 0)]
    index = {k for k, name in enumerate(names) if name in stored or STORED.fullmatch(name)}
    index |= {k for k in named if labels_rows(column(k))}
    index -= {target, *told}
    empty = {k for k in range(width) if whole and all(map(is_missing, column(k)))}
    empty -= {*index, *told}
    if target is None:
        target = max({*range(width)} - index - empty, default=width - 1)
    left_out = {target, *dropped, *index, *empty}
    features = tuple(k for k in range(width) if k not in left_out)
    choice = Choice(
        width=width,
        names=tuple(names),
        target=target,
        features=features,
        dropped=dropped,
        texts=(),
        one_hot=reading.one_hot,
        index=tuple(sorted(index)),
        empty=tuple(sorted(empty)),
        categorical=categorical,
        numeric=numeric,
        separator=separator,
    )
    rename = f", or rename {choice.few(choice.index)} if it is no index" if index else ""
    refuse_first(
        [
            *(
                (
                    n > 1,
                    f"{path}: {choice.called(k)} is named by two of --drop, --categorical,"
                    " --numeric; name it with one",
                )
                for k, n in told.items()
            ),
            (
                target in dropped,
                f"{path}: --drop names the target column, {choice.called(target)}; name another"
                " --target",
            ),
            (
                target in empty,
                f"{path}: {choice.called(target)} has no value; name another --target",
            ),
            (
                not features,
                f"{path}: no column is left as a feature; keep at least one besides the"
                f" target{rename}",
            ),
        ]
    )
    notes = [
        f"{choice.called(k)} may only number the rows; if so, leave it out with --drop"
        f" {choice.given(k)}"
        for k in features
        if k not in categorical and (k in named or counts_rows(column(k)))
    ]
    return replace(choice, notes=tuple(notes[:MOST_TOLD]))


def with_kinds(
    choice: Choice,
    column: Callable[[int], Sequence[str]],
    labels: bool,
    by_type: Collection[int] = (),
) -> Choice:
    """The choice, with those of its columns that hold texts, and dates or times."""
    texts: list[int] = []
    dates: dict[int, tuple[str, ...]] = {}
    of_numbers = {*choice.numeric, *([choice.target] if labels else [])}
    of_texts = {*choice.categorical, *by_type} - of_numbers
    for k in (*choice.features, choice.target):
        first, *others = known = [*filterfalse(is_missing, column(k))] or ["0"]
        of_one = k in of_numbers or is_numeric(first) or is_infinite(first)
        if k in of_texts or not (of_one or (len(others) > 1 and all(map(is_numeric, others)))):
            texts.append(k)
            parts = () if k in choice.categorical else parts_of(known)
            dates |= {k: parts} if parts else {}
    return replace(choice, texts=tuple(texts), dates=dates)


def labels_rows(column: Sequence[str]) -> bool:
    """Values that label rows all differ, and none is a fraction."""
    fractions = (is_number(text) and not float(text).is_integer() for text in column)
    return len({*column}) == len(column) and not any(fractions)


def counts_rows(column: Sequence[str]) -> bool:
    """Whether values are 0, 1, 2, … or 1, 2, 3, …; at least three."""
    first = column[0] if len(column) > 2 and is_number(column[0]) else ""
    return (
        bool(first)
        and float(first) in (0, 1)
        and all(
            is_number(text) and float(text) == float(first) + k for k, text in enumerate(column)
        )
    )


def _column(path: Path, names: Sequence[str], width: int, option: str, wanted: str) -> int:
    """An option names a column by its name, or by its number from 1."""
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    unnamed = f"the file has no header; give the column's number, 1 to {width}"
    known = f"no such column{nearest(wanted, list(names))}"
    raise WrongInput(f"{path}: {option} {wanted}: {known if names else unnamed}")
