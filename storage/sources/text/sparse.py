"""Source of LIBSVM or VW files, whose rows list features by number.

Blocks of lines are parsed by pyarrow's CSV reader if every line is plain. A line `L i:v i:v` is
rewritten as the three CSV lines `:L`, `i:v` and `i:v` with the delimiter ':'; lines with an empty
first field hold the labels. Input that the reader accepts but `sparse_lines` rejects, or that it
reads differently, is detected here and left to `sparse_lines`.
"""

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule, at, number_of
from storage.sources.problems import Problems
from storage.sources.source import Piece, Reading, refuse_first
from storage.sources.text.source import (
    Block,
    TextFile,
    TextSource,
    lines_of,
    read_csv,
    with_unix_ends,
)
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


LARGEST_INDEX = 2**31 - 2
TOKEN = re.compile(rb"\S+")
VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")  # what differs between faults of one kind
Token = tuple[bytes, int]  # a word of a line, and its column from 1


def sparse_lines(
    lines: Iterable[tuple[int, bytes]],
    form: str,
    path: Path,
    rule: LabelRule,
    first: int,
    n_features: int | None,
    namespace: bytes = b"",
) -> Piece:
    """Parse the rows of a LIBSVM or VW file from (number, line) pairs.

    `form` is "libsvm" or "vw"; `first` is the number of the first feature, and `namespace` that of
    all features. Raises `Malformed` with every kind of fault: malformed lines, and features beyond
    `n_features`.
    """
    labels, indptr, indices, values = array("d"), array("q", [0]), array("i"), array("d")
    problems = Problems()
    for number, line in problems.until_fault(lines):
        if not is_row(line, form):
            continue
        try:
            label, row = sparse_row(line, form, path, number, first, rule, namespace)
            _check_bound(row, line, path, number, first, n_features)
        except WrongInput as error:
            # the message without its position and what is quoted there
            kind = VARYING.sub("", str(error).removeprefix(str(path)))
            problems.add(error, kind)
            continue
        labels.append(label)
        for index, value in row:
            if value != 0.0:
                indices.append(index)
                values.append(value)
        indptr.append(len(indices))
    problems.refuse()
    return Piece(np.array(labels), np.array(indptr), np.array(indices), np.array(values))


def _check_bound(
    row: list[tuple[int, float]],
    line: bytes,
    path: Path,
    number: int,
    first: int,
    n_features: int | None,
) -> None:
    """Raise `WrongInput` if the last feature of a row is beyond `n_features`."""
    bound = LARGEST_INDEX + 1 if n_features is None else n_features
    if row and row[-1][0] >= bound:
        name = str(row[-1][0] + first)
        found = re.search(rb"(?<!\S)0*" + name.encode() + rb"(?![^\s:])", line)
        raise WrongInput(
            f"{at(path, number, found.start() + 1 if found else 1)}: feature {name} is beyond"
            f" --n-features {bound}; give a larger number"
        )


def is_row(line: bytes, form: str) -> bool:
    """Whether a line is a row, that is, neither blank nor a comment."""
    text = line.strip()
    return bool(text) and not (form == "libsvm" and text.startswith(b"#"))


def sparse_row(
    line: bytes,
    form: str,
    path: Path,
    number: int,
    first: int,
    rule: LabelRule,
    namespace: bytes = b"",
) -> tuple[float, list[tuple[int, float]]]:
    """Parse a row to (label, (feature from 0, value) pairs in the order of the features).

    A LIBSVM row is `label index:value …`; its indices increase, and a comment may follow after "#".
    A VW row is `label |namespace feature:value …` with numbers as features; a missing value is 1,
    and the values of a repeated feature are added. Raises `WrongInput` for another syntax.
    """
    is_vw = form == "vw"
    if is_vw:
        tokens = _vw_tokens(line, path, number, namespace)
    else:
        tokens = _tokens(line.split(b"#", 1)[0])
    text, column = next(tokens)
    label = rule(text, path, number, "the label", column)
    row: dict[int, float] = {}
    last = -1
    for token, column in tokens:
        name, colon, value = token.partition(b":")
        if not name.isdigit() or not (colon or is_vw):
            wrong = f"{_shown(token)} is not a feature; a feature is written index:value"
            if is_vw:
                wrong = (
                    f"feature {_shown(name)} is not a number from 0 to {LARGEST_INDEX}; number the"
                    " features first"
                )
            elif name == b"qid":
                wrong = (
                    f"{_shown(token)} is not a feature; query ids are not supported, remove them"
                )
            raise WrongInput(f"{at(path, number, column)}: {wrong}")
        index = _index(name, path, number, first, column)
        if index <= last and not is_vw:
            raise WrongInput(
                f"{at(path, number, column)}: feature {index + first} comes after {last + first};"
                " sort each line by feature, each one once"
            )
        last = index
        amount = 1.0
        if colon:
            what = f"the value of feature {index + first}"
            amount = number_of(value, path, number, what, column=column + len(name) + 1)
        row[index] = row.get(index, 0.0) + amount
        if not math.isfinite(row[index]):
            raise WrongInput(
                f"{at(path, number, column)}: the values of feature {index + first} add up to"
                f" {row[index]}; make them smaller"
            )
    return label, sorted(row.items())


def namespace_of(body: bytes) -> bytes:
    """The namespace that the text after '|' begins with; empty if it has none."""
    return b"" if body[:1].isspace() else body.split(None, 1)[0]


def _vw_tokens(text: bytes, path: Path, number: int, namespace: bytes) -> Iterator[Token]:
    """The label of a VW line and its features. Raises `WrongInput` if it has anything else."""
    head, bar, body = text.partition(b"|")
    begin, fields = len(head) + 1, list(_tokens(head))
    tagged = len(fields) == 2 and fields[1][0].startswith(b"'")
    refuse_first(
        [
            (
                not bar,
                f"{at(path, number)}: no '|' between the label and the features in {_shown(text)};"
                " write label | index:value …",
            ),
            (
                len(fields) != 1 and not tagged,
                f"{at(path, number, 1)}: {_shown(head)} before '|' is not one label; importance"
                " weights and bases are not supported",
            ),
            (
                not tagged and not head[-1:].isspace(),
                f"{at(path, number, 1)}: {_shown(head)} right before '|' is a tag, and there is no"
                " label; put a space before '|' if it is one",
            ),
            (
                b"|" in body,
                f"{at(path, number, begin + body.find(b'|') + 1)}: more than one namespace; merge"
                " them into one, with different feature numbers",
            ),
        ]
    )
    tokens = _tokens(body, begin)
    nameless = (b"", begin + 1)
    name, column = nameless if body[:1].isspace() else next(tokens, nameless)
    refuse_first(
        [
            (
                b":" in name or name.isdigit(),
                f"{at(path, number, column)}: {_shown(name)} right after '|' is a namespace, and"
                " weights of namespaces (after ':') are not supported; put a space after '|' if it"
                " is a feature",
            ),
            (
                name != namespace and bool(body[len(name) :].strip()),
                f"{at(path, number, column)}: namespace {_shown(name)}, and {_shown(namespace)} in"
                " the first rows; their features are different ones: number them in one namespace",
            ),
        ]
    )
    return chain(fields[:1], tokens)


def _tokens(text: bytes, before: int = 0) -> Iterator[Token]:
    """Tokens of a text that follows after `before` bytes of its line."""
    return ((match[0], before + match.start() + 1) for match in TOKEN.finditer(text))


def _index(name: bytes, path: Path, number: int, first: int, column: int) -> int:
    digits = name.lstrip(b"0") or b"0"
    if len(digits) > 10 or int(digits) - first > LARGEST_INDEX:
        raise WrongInput(
            f"{at(path, number, column)}: feature {digits.decode()[:60]} is beyond"
            f" {LARGEST_INDEX + first}; hash the features to fewer numbers"
        )
    if int(digits) < first:
        raise WrongInput(
            f"{at(path, number, column)}: feature 0 in a file counted from 1; if it counts from 0,"
            " add --zero-based"
        )
    return int(digits) - first


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace").strip()[:60])
