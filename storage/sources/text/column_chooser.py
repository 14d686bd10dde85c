"""The first lines of files of columns: whether they are names, which column is the target, and
which are features.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from koco_stream.errors import WrongInput, nearest
from storage.sources.compressed import opened
from storage.sources.numbers import NUMBER, LabelRule, at
from storage.sources.text.blocks import TextFile
from storage.sources.text.column_choice import Choice
from storage.sources.text.columns_lines import fields_of
from storage.sources.text.lines import lines_of


class Chooser:
    """Looks at the first lines of files of columns (`form` is "csv" or "space"), in order, the
    columns being those of the first.

    The target column (by default the last) gives the labels; those in `drop` are left out; with
    `one_hot`, a column whose first value is no number becomes one feature for each of its values,
    in sorted order, and "?" is a value like any other.
    """

    def __init__(
        self,
        form: str,
        rule: LabelRule,
        target: str | None,
        drop: Sequence[str],
        one_hot: bool,
        header: bool | None,
    ) -> None:
        self.form, self.rule, self.wanted, self.drop = form, rule, target, drop
        self.one_hot, self.header = one_hot, header
        self.choice: Choice | None = None
        self.dropped: list[int] = []

    def look(self, path: Path) -> TextFile:
        """The file, to be read from its first row on. Raises `WrongInput` if its columns are not
        right, or it has no rows.
        """
        rows = fields_of(
            lines_of(path) if self.header is False else _unmarked(path), path, self.form
        )
        line, fields = _next(path, rows)
        if self.choice is None and len(fields) < 2:
            between = "commas" if self.form == "csv" else "spaces"
            raise WrongInput(
                f"{at(path, line)}: one column only; a row needs a target and at least one feature,"
                f" separated by {between}, and this is {fields[0][:60]!r}"
            )
        if not self._is_header(path, line, fields):
            if self.header is None and line == 1 and _is_marked(path):
                raise WrongInput(
                    f"{at(path, 1)}: a # before a row; remove the line if it is a comment, or add"
                    " --no-header if it is a row"
                )
            self.choice = self.choice or self._choose(path, [], fields)
            return TextFile(path, 0, 1, path.stat().st_size)
        if self.choice is not None and self.choice.names and list(self.choice.names) != fields:
            raise WrongInput(
                f"{at(path, line)}: other columns than the first file's; give files of the same"
                " columns"
            )
        if self.header is None and self.choice is not None and not self.choice.names:
            raise WrongInput(
                f"{at(path, line)}: no number, and the first file has no names; add --no-header if"
                " it is a row, or remove it"
            )
        _, first = _next(path, rows)
        if self.header is None and not any(NUMBER.match(field.encode()) for field in first):
            raise WrongInput(
                f"{at(path, line)}: neither it nor the next row has a number; add --header if it"
                " holds names, else --no-header"
            )
        self.choice = self.choice or self._choose(path, fields, first)
        with opened(path) as (_, text):
            begin = sum(len(text.readline()) for _ in range(line))
        return TextFile(path, begin, line + 1, path.stat().st_size)

    def _is_header(self, path: Path, line: int, fields: list[str]) -> bool:
        """As told; else a line without any number. Raises `WrongInput` for a line with both where
        texts cannot be values.
        """
        if self.header is not None:
            return self.header
        texts = [field for field in fields if not NUMBER.match(field.encode())]
        if 0 < len(texts) < len(fields) and not self.one_hot and self.rule.text is None:
            raise WrongInput(
                f"{at(path, line)}: numbers, and text {texts[0][:60]!r}: if the line holds names,"
                " add --header; if it is a row, fill the value in, or declare texts as categories"
                " with --one-hot, or as labels with --labels"
            )
        return len(texts) == len(fields)

    def _choose(self, path: Path, names: list[str], first: list[str]) -> Choice:
        """Find the target and the features among the columns, of which `first` is the first row."""
        width = len(names or first)
        repeated = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if repeated is not None:
            raise WrongInput(
                f"{path}: the header has {repeated!r} twice; give each column a name of its own"
            )
        target = (
            width - 1
            if self.wanted is None
            else _column(path, "--target", self.wanted, names, width)
        )
        self.dropped = [_column(path, "--drop", name, names, width) for name in self.drop]
        features = tuple(k for k in range(width) if k != target and k not in self.dropped)
        texts = (
            tuple(k for k in features if k < len(first) and not NUMBER.match(first[k].encode()))
            if self.one_hot
            else ()
        )
        choice = Choice(self.form, width, tuple(names), target, features, texts, self.one_hot)
        if target in self.dropped:
            raise WrongInput(
                f"{path}: --drop names the target column, {choice.called(target)}; name another"
                " --target"
            )
        if not features:
            raise WrongInput(
                f"{path}: --drop leaves no feature; keep at least one column besides the target"
            )
        return choice


def _is_marked(path: Path) -> bool:
    return any(line.startswith(b"#") for _, line in islice(lines_of(path), 1))


def _unmarked(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines, the first one without a # before its names."""
    for number, line in lines_of(path):
        yield number, line.lstrip(b"# ") if number == 1 and line.startswith(b"#") else line


def _next(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[int, list[str]]:
    row = next(rows, None)
    if row is None:
        raise WrongInput(f"{path}: the file holds no rows")
    return row


def _column(path: Path, option: str, wanted: str, names: list[str], width: int) -> int:
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    if names:
        raise WrongInput(f"{path}: {option} {wanted}: no such column{nearest(wanted, names)}")
    raise WrongInput(
        f"{path}: {option} {wanted}: the file has no header; give the column's number, 1 to {width}"
    )
