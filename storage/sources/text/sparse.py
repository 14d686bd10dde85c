"""Source of LIBSVM or VW files, whose rows list features by number.

Blocks of plain lines are parsed by pyarrow's CSV reader: `L i:v i:v` becomes the lines `:L`, `i:v`
and `i:v`. What the reader accepts but `SparseText.slow` does not is left to `slow`.
"""

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput, refuse_first
from storage.sources.arrow import labels as labels_of
from storage.sources.numbers import NUMBER, LabelRule, at, no_number, number_in, shown
from storage.sources.source import Piece, Problems, Reading
from storage.sources.text.source import (
    Block,
    TextFile,
    TextSource,
    Unusual,
    lines_of,
    read_csv,
    text_of,
    top_of,
    with_unix_ends,
)

LARGEST_INDEX = 2**31 - 2
CACHED = 1 << 20  # the reader's block size; larger blocks exceed the processor cache and are slower
NAMESPACE = re.compile(rb"[^|]*\|(?=.*\S)([^\s:]*)")
# the name of the class at the beginning of a row
LACKING = rb"\d+:|(?i:\?|na|n/a|nan|null|none)(?=\s|$)"
NAME = re.compile(rb"^[ \t]*(?!" + LACKING + rb")([^\s,|#]+)(?=\s|$)", re.MULTILINE)
Token = tuple[bytes, int]  # a word of a line, and its column from 1


@dataclass(kw_only=True)
class SparseText(TextSource[Piece]):
    """Source of LIBSVM or VW files."""

    first: int  # number of the first feature in the files, 0 or 1
    namespace: bytes = b""  # of all features of a VW file

    def names_in(self, piece: Block) -> set[str]:
        names = NAME.findall(text_of(piece))
        self.release(piece)
        return {name.decode("utf-8", "replace") for name in names}

    @property
    def bound(self) -> int:
        return LARGEST_INDEX + 1 if self.n_features is None else self.n_features

    def fast(self, text: bytes) -> Piece:
        lines = text.count(b"\n")
        plain = b"\n" + with_unix_ends(text)[:-1]
        heads = lines
        if self.format == "vw":
            head = rb"\n([^\s|]+)[ \t]\|" + re.escape(self.namespace) + rb"(?=\s|\Z)"
            plain, heads = re.subn(head, rb"\n\1", plain)
        # the reader would accept hexadecimal numbers
        if heads != lines or b"|" in plain or b"x" in plain or b"X" in plain:
            raise Unusual
        plain = plain.replace(b"\n", b"\n:")[1:].translate(bytes.maketrans(b" \t", b"\n\n"))
        types = {"feature": pa.int32(), "value": pa.float64()}
        table = read_csv(plain, ":", types, types, [""], CACHED)
        # -1 where the text before the ':' is empty, NaN where the text after it is empty
        features = table.column("feature").fill_null(-1).to_numpy()
        values = table.column("value").to_numpy()
        starts = np.flatnonzero(features < 0)
        ascending = (features[1:] > features[:-1]) | (features[1:] < 0)
        if (
            starts.size != lines
            or not ascending.all()
            or not np.isfinite(values).all()
            or int(features.max()) - self.first >= self.bound
            # feature 0 is an error in a file counted from 1; the reader would accept -0 as 0
            or ((features == 0).any() and (self.first == 1 or b"\n-" in plain))
            or not self.rule.one_text_a_number
        ):
            raise Unusual
        labels = labels_of(pa.array(values[starts]), str, "the label", self.rule)
        kept = (features >= 0) & (values != 0.0)
        indices = features[kept] - np.int32(self.first)
        indptr = np.append(np.cumsum(kept)[starts], indices.size)
        return Piece(labels, indptr, indices, values[kept])

    def slow(self, lines: Iterable[tuple[int, bytes]], path: Path) -> Piece:
        labels = array("d")
        indptr = array("q", [0])
        indices = array("i")
        values = array("d")
        problems = Problems()
        for number, line in problems.until_fault(lines):
            text = line.strip()
            if not text or (self.format == "libsvm" and text.startswith(b"#")):
                continue
            try:
                label, row = self.row(line, path, number)
            except WrongInput as error:
                problems.add(error)
                continue
            labels.append(label)
            kept = {index: value for index, value in sorted(row.items()) if value != 0.0}
            indices.extend(kept)
            values.extend(kept.values())
            indptr.append(len(indices))
        problems.refuse()
        return Piece(np.array(labels), np.array(indptr), np.array(indices), np.array(values))

    def row(self, line: bytes, path: Path, number: int) -> tuple[float, dict[int, float]]:
        is_vw = self.format == "vw"
        tokens = self.vw_tokens(line, path, number) if is_vw else _tokens(line.split(b"#", 1)[0])
        text, column = next(tokens)
        if re.fullmatch(rb"\d+:\S+", text) and self.rule.number(text.decode("latin-1")) is None:
            raise WrongInput(
                f"{at(path, number, column)}: {shown(text)} is a feature, and there is no label;"
                " write one at the beginning of the line"
            )
        said = text.decode("utf-8", "replace")
        label = self.rule.number(said)
        if label is None:
            raise WrongInput(f"{at(path, number, column)}: the label is {self.rule.fault(said)}")
        row: dict[int, float] = {}
        for token, column in tokens:
            where = at(path, number, column)
            name, colon, value = token.partition(b":")
            if not name.isdigit() or not (colon or is_vw):
                raise WrongInput(f"{where}: {_why_no_feature(token, name, is_vw)}")
            index = self.index(name, where)
            feature = index + self.first
            if index in row and not is_vw:
                raise WrongInput(f"{where}: feature {feature} is there twice; keep one of them")
            said = value.decode("utf-8", "replace") if colon else "1"
            amount = number_in(said)
            if amount is None:
                where = at(path, number, column + len(name) + 1)
                raise WrongInput(f"{where}: the value of feature {feature} is {no_number(said)}")
            row[index] = row.get(index, 0.0) + amount
            if not math.isfinite(row[index]):
                raise WrongInput(
                    f"{where}: the values of feature {feature} add up to {row[index]}; make them"
                    " smaller"
                )
        return label, row

    def index(self, name: bytes, where: str) -> int:
        digits = name.lstrip(b"0") or b"0"
        number = int(digits[:11])
        most = LARGEST_INDEX + self.first
        if not self.first <= number <= min(most, self.first + self.bound - 1):
            refuse_first(
                [
                    (
                        number > most,
                        f"{where}: feature {digits.decode()[:60]} is beyond {most}; number"
                        " the features anew",
                    ),
                    (
                        number < self.first,
                        f"{where}: feature 0 in a file counted from 1; if it counts from 0, add"
                        " --zero-based",
                    ),
                    (
                        True,
                        f"{where}: feature {number} is beyond --n-features {self.bound}; give a"
                        " larger number",
                    ),
                ]
            )
        return number - self.first

    def vw_tokens(self, text: bytes, path: Path, number: int) -> Iterator[Token]:
        head, bar, body = text.partition(b"|")
        begin = len(head) + 1
        fields = list(_tokens(head))
        tagged = len(fields) == 2 and fields[1][0].startswith(b"'")
        refuse_first(
            [
                (
                    not bar,
                    f"{at(path, number)}: no '|' between the label and the features in"
                    f" {shown(text)}; write label | index:value …",
                ),
                (
                    len(fields) != 1 and not tagged,
                    f"{at(path, number, 1)}: {shown(head)} before '|' is not one label; importance"
                    " weights and bases are not supported",
                ),
                (
                    not tagged and not head[-1:].isspace(),
                    f"{at(path, number, 1)}: {shown(head)} right before '|' is a tag, and there is"
                    " no label; put a space before '|' if it is one",
                ),
                (
                    b"|" in body,
                    f"{at(path, number, begin + body.find(b'|') + 1)}: more than one namespace;"
                    " merge them into one, with different feature numbers",
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
                    f"{at(path, number, column)}: {shown(name)} right after '|' is a namespace,"
                    " and weights of namespaces (after ':') are not supported; put a space after"
                    " '|' if it is a feature",
                ),
                (
                    name != self.namespace and bool(body[len(name) :].strip()),
                    f"{at(path, number, column)}: namespace {shown(name)}, and"
                    f" {shown(self.namespace)} in the first rows; their features are different"
                    " ones: number them in one namespace",
                ),
            ]
        )
        return chain(fields[:1], tokens)

    def read(self, piece: Block) -> Piece:
        return self.rows(piece)


def sparse_source(
    paths: Sequence[Path], form: str, reading: Reading, block_bytes: int
) -> SparseText:
    """By default, features are counted from 1 for LIBSVM and from 0 for VW."""
    rule = LabelRule(reading.labels)
    zero_based = form == "vw" if reading.zero_based is None else reading.zero_based
    tops = {path: top_of(path) for path in paths}
    refuse_first(
        (not line, f"{path}: the file holds no rows") for path, (_, _, line) in tops.items()
    )
    name = NAME.match(tops[paths[0]][2])
    found = (NAMESPACE.match(line) for _, line in (lines_of(paths[0]) if form == "vw" else ()))
    namespace = next((match[1] for match in found if match), b"")
    return SparseText(
        format=form,
        layout="sparse",
        paths=tuple(paths),
        n_features=reading.n_features,
        class_names=rule.names,
        done=rule.done,
        origin={**reading.given(), "format": form},
        files=tuple(TextFile(path, k, len(comments)) for path, (comments, k, _) in tops.items()),
        rule=rule,
        block_bytes=block_bytes,
        first=0 if zero_based else 1,
        namespace=b"" if namespace.isdigit() else namespace,
        named=reading.labels is None and name is not None and not NUMBER.match(name[1]),
    )


def _why_no_feature(token: bytes, name: bytes, is_vw: bool) -> str:
    if is_vw:
        return (
            f"feature {shown(name)} is not a number from 0 to {LARGEST_INDEX}; number the features"
            " first"
        )
    queries = "query ids are not supported; remove them: sed 's/ qid:[0-9]*//' FILE > NEW"
    remedy = queries if name == b"qid" else "a feature is written index:value"
    return f"{shown(token)} is not a feature; {remedy}"


def _tokens(text: bytes, before: int = 0) -> Iterator[Token]:
    """The text follows after `before` bytes of its line."""
    return ((match[0], before + match.start() + 1) for match in re.finditer(rb"\S+", text))
