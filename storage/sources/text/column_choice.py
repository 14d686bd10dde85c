"""Which columns a file of columns has, and what its rows are before texts become features."""

from dataclasses import dataclass

from koco_stream.types import Array


@dataclass(frozen=True)
class Choice:
    """What the columns of CSV or space-separated files (`form`) are: decided by the first lines,
    and the same for all rows.

    width: how many there are. names: theirs, or none. target: the column of labels. features: the
    others that are kept. texts: those of them that hold texts. one_hot: whether texts are features.
    Columns are counted from 0 here, and from 1 in what is said of them.
    """

    form: str
    width: int
    names: tuple[str, ...]
    target: int
    features: tuple[int, ...]
    texts: tuple[int, ...]
    one_hot: bool

    def called(self, column: int) -> str:
        """A column in words."""
        return f"column {self.names[column]!r}" if self.names else f"column {column + 1}"

    def feature(self, column: int) -> str:
        """A column's name as a feature."""
        return self.names[column] if self.names else f"column {column + 1}"


@dataclass(frozen=True)
class Parsed:
    """Rows as they stand: labels (n,), values (n, number of features), and for each column of texts
    its different texts, in the order in which they are met; the value there is the text's number in
    that list.
    """

    labels: Array
    values: Array
    texts: dict[int, list[str]]
