"""The roles of a table's columns: which is the target, which are features, and what they hold."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import filterfalse
from pathlib import Path

from koco_stream.errors import WrongInput, nearest
from storage.sources.dates import parts_of
from storage.sources.numbers import is_infinite, is_missing, is_number, is_numeric
from storage.sources.source import MOST_TOLD, Reading, few, refuse_first

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
    """Roles of the columns of a table, counted from 0 here and from 1 in messages.

    `names` is empty for a table without names. The columns `index` number the rows, and are left
    out as the `dropped` ones and the `empty` ones are. Those of `texts` hold texts; of these, the
    feature columns are one-hot encoded, but for those of `dates`, which become parts; a target
    among them has classes. What is `categorical` or `numeric` was said to be. With `one_hot`, a
    column may have any number of texts. `separator` stands between the columns of a CSV file.
    `notes` say what is doubtful.
    """

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
        """Description of a column in messages: its name, or its number counted from 1."""
        return f"column {self.names[column]!r}" if self.names else f"column {column + 1}"

    def given(self, column: int) -> str:
        """A column as an option takes it on the command line."""
        return shlex.quote(self.names[column]) if self.names else f"{column + 1}"

    def few(self, columns: Sequence[int]) -> str:
        """Description of columns by their number and the first names."""
        return few([self.called(column) for column in columns])

    def feature_names(self, known: dict[int, list[str]]) -> list[str]:
        """Names of the features, if the categories are `known`; none if there are no names."""
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
        """Whether a text of the target marks a missing label."""
        return text in ("", "?") or (self.target not in self.categorical and is_missing(text))

    def refuse_many(self, path: Path, column: int, n_texts: int) -> None:
        """Raise `WrongInput` for too many distinct texts in a column."""
        name = self.given(column)
        drop = f"leave it out with --drop {name}"
        many = f"{path}: {self.called(column)} holds more than {{:,}} different texts; "
        target = column == self.target
        refuse_first(
            [
                (
                    target and n_texts > MOST_CLASSES,
                    f"{many.format(MOST_CLASSES)}name another --target, with fewer classes, or if"
                    f" it holds numbers, add --numeric {name}",
                ),
                (n_texts > MOST_TEXTS, many.format(MOST_TEXTS) + drop),
                (
                    n_texts > MOST_CATEGORIES and not (target or self.one_hot),
                    f"{many.format(MOST_CATEGORIES)}{drop}, make a feature of each with --one-hot,"
                    " or hash these with --one-hot --layout sparse --hash-bits 18; if it holds"
                    f" numbers and some texts, add --numeric {name}",
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
) -> Choice:
    """Select the target and the features among the `width` columns of a table.

    A column that holds the index of a data frame is left out, by its name and its first values,
    which `column` gives as texts; so are the columns `stored` as an index, and those without a
    value if `column` gives the `whole` table. Without a `target`, the
    last other column is the target. `names` is empty if the columns have none. Which columns hold
    texts is left open. Raises `WrongInput` if a named column does not exist, a name is repeated, or
    no feature is left.
    """
    named_one = partial(_column, path, names, width)
    target = None if reading.target is None else named_one("--target", reading.target)
    dropped = tuple(named_one("--drop", name) for name in reading.drop)
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
    categorical = tuple(named_one("--categorical", name) for name in reading.categorical)
    numeric = tuple(named_one("--numeric", name) for name in reading.numeric)
    told = [k for k, n in Counter((*dropped, *categorical, *numeric)).items() if n > 1]
    named = [k for k, name in enumerate(names) if INDEX.fullmatch(name) and (name or k == 0)]
    index = {k for k, name in enumerate(names) if name in stored or STORED.fullmatch(name)}
    index |= {k for k in named if labels_rows(column(k))}
    index -= {target, *dropped, *categorical, *numeric}
    empty = {k for k in range(width) if whole and all(map(is_missing, column(k)))}
    empty -= {*index, *dropped, *categorical, *numeric}
    if target is None:
        target = max({*range(width)} - index - empty, default=width - 1)
    left_out = {target, *dropped, *index, *empty}
    features = tuple(k for k in range(width) if k not in left_out)
    choice = Choice(width, tuple(names), target, features, dropped, (), reading.one_hot)
    choice = replace(choice, index=tuple(sorted(index)), empty=tuple(sorted(empty)))
    choice = replace(choice, categorical=categorical, numeric=numeric)
    own = f"{path}: --drop names the target column, {choice.called(target)}; name another --target"
    rename = f", or rename {choice.few(sorted(index))} if it is no index" if index else ""
    none = f"{path}: no column is left as a feature; keep at least one besides the target{rename}"
    twice = f"{path}: {choice.few(told[:1])} is named by two of --drop, --categorical, --numeric"
    valueless = f"{path}: {choice.called(target)} has no value; name another --target"
    refuse_first(
        [
            (bool(told), f"{twice}; name it with one"),
            (target in dropped, own),
            (target in empty, valueless),
            (not features, none),
        ]
    )
    notes = [
        f"{choice.called(k)} may only number the rows; if so, leave it out with --drop"
        f" {choice.given(k)}"
        for k in features
        if k not in categorical and (k in named or counts_rows(column(k)))
    ]
    return replace(choice, notes=tuple(notes[:MOST_TOLD]))


def with_kinds(choice: Choice, column: Callable[[int], Sequence[str]], labels: bool) -> Choice:
    """The choice, with those of its columns that hold texts, and dates or times.

    The first value of a column that is not missing decides, unless it was said, or all others of
    the first rows, which `column` gives, are numbers. A column without a value is taken as numbers.
    The target has classes if it holds texts and there are no `labels` that turn them into numbers.
    """
    texts: list[int] = []
    dates: dict[int, tuple[str, ...]] = {}
    of_numbers = {*choice.numeric, *([choice.target] if labels else [])}
    categorical = {*choice.categorical} - of_numbers
    for k in (*choice.features, choice.target):
        first = next(filterfalse(is_missing, column(k)), "0")
        is_one = k in of_numbers or is_numeric(first) or is_infinite(first)
        known = [] if is_one else list(filterfalse(is_missing, column(k)))
        alone = len(known) > 2 and all(map(is_numeric, known[1:]))
        if k in categorical or (known and not alone):
            texts.append(k)
            parts = () if k in categorical else parts_of(known)
            dates |= {k: parts} if parts else {}
    return replace(choice, texts=tuple(texts), dates=dates)


def labels_rows(column: Sequence[str]) -> bool:
    """Whether the first values of a column may label rows: all differ, and none is a fraction."""
    fractions = (is_number(text) and not float(text).is_integer() for text in column)
    return len({*column}) == len(column) and not any(fractions)


def counts_rows(column: Sequence[str]) -> bool:
    """Whether the first values of a column are 0, 1, 2, … or 1, 2, 3, …; at least three."""
    first = column[0] if len(column) > 2 and is_number(column[0]) else ""
    return (
        bool(first)
        and float(first) in (0, 1)
        and all(
            is_number(text) and float(text) == float(first) + k for k, text in enumerate(column)
        )
    )


def _column(path: Path, names: Sequence[str], width: int, option: str, wanted: str) -> int:
    """Index of the column that an option names by its name, or by its number from 1."""
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    unnamed = f"the file has no header; give the column's number, 1 to {width}"
    wrong = f"no such column{nearest(wanted, list(names))}" if names else unnamed
    raise WrongInput(f"{path}: {option} {wanted}: {wrong}")
