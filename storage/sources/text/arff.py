"""Source of ARFF files: tables whose header declares the columns, with dense or sparse rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from koco_stream.errors import WrongInput, refuse_first
from storage.sources.features import Parsed, column_fields
from storage.sources.numbers import at
from storage.sources.roles import chosen_columns, with_kinds
from storage.sources.source import Problems, Reading
from storage.sources.text.columns import MOST_ROWS, MOST_VALUES, ColumnText, decoded
from storage.sources.text.header import column_of
from storage.sources.text.source import TextFile, Unusual, lines_of

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
VALUE = rf"({QUOTED}|[^,'\"{{}}]*?)\s*[,\t]"
VALUES = re.compile(rf"\s*{VALUE}")
NUMBERED = re.compile(rf"\s*(\d{{1,9}})\s+{VALUE}")
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{'\"]+)(?:\s+|(?={{))(\S.*)", re.IGNORECASE)
NOMINAL = re.compile(rf"\{{\s*({QUOTED}|[^,'\"{{}}]*?)\s*[,}}]")
NUMERIC = re.compile("numeric|real|integer", re.IGNORECASE)


@dataclass(kw_only=True)
class ArffText(ColumnText):
    """A sparse row does not name values that are `absent` (columns,)."""

    absent: tuple[str, ...]

    def fast(self, text: bytes) -> Parsed:
        """Dense rows are CSV; those with single quotes or comments are left to `slow`."""
        if re.search(rb"[{'%\\]", text):
            raise Unusual
        return super().fast(text)

    def fields(self, line: bytes, number: int, path: Path) -> list[str]:
        return values_of(line, number, path, self.absent)


def values_of(line: bytes, number: int, path: Path, absent: Sequence[str]) -> list[str]:
    """No values for a blank line or a comment."""
    text = decoded(line, number, path).strip()
    if not text or text.startswith("%"):
        return []
    sparse = text.startswith("{")
    row = text[1:].removesuffix("}").strip() if sparse else text
    found = [*(NUMBERED if sparse else VALUES).finditer(f"{row},")] if row else []
    refuse_first(
        [
            (
                "".join(one[0] for one in found) != (row and f"{row},"),
                f"{at(path, number)}: {text[:60]!r} is no row of ARFF; write value, value, … or"
                " {number value, …}, without a weight, and texts with other characters in quotes",
            ),
            *(
                (
                    int(one[1]) >= len(absent),
                    f"{at(path, number)}: attribute {one[1]}, and they are numbered from 0 to"
                    f" {len(absent) - 1}; correct it",
                )
                for one in (found if sparse else ())
            ),
        ]
    )
    if not sparse:
        return [_unquoted(one[1]) for one in found]
    values = [*absent]
    for one in found:
        values[int(one[1])] = _unquoted(one[2])
    return values


def _unquoted(text: str) -> str:
    quoted = text[:1] in ("'", '"')
    return re.sub(r"\\(.)", r"\1", text[1:-1]).strip() if quoted else text


def header_of(path: Path) -> tuple[dict[str, str], int]:
    """The types of the attributes by name, and the line (from 1) where rows begin."""
    kinds: dict[str, str] = {}
    for number, line in lines_of(path):
        text = decoded(line, number, path).strip()
        if text.lower().startswith("@data"):
            return kinds, number + 1
        if not text.lower().startswith("@attribute"):
            continue
        found = ATTRIBUTE.fullmatch(text)
        name, kind = map(_unquoted, found.groups()) if found else (text[:60], "")
        refuse_first(
            (is_there, f"{at(path, number)}: {name!r} {words}")
            for is_there, words in [
                (not found, "is no attribute; write @attribute NAME TYPE"),
                (name in kinds, "is an attribute already; rename one of them"),
                (
                    kind.lower().startswith("relational"),
                    "is relational: its values are tables; write a file without it",
                ),
            ]
        )
        kinds[name] = kind
    raise WrongInput(f"{path}: no line @data; an ARFF file has its rows after it")


def arff_source(paths: Sequence[Path], form: str, reading: Reading, block_bytes: int) -> ArffText:
    """Nominal attributes are categories, and a nominal target has classes."""
    headers = [header_of(path) for path in paths]
    kinds, first = headers[0]
    names = list(kinds)
    nominal = [NOMINAL.match(kind) for kind in kinds.values()]
    default = tuple(_unquoted(first[1]) if first else "0" for first in nominal)
    refuse_first(
        (
            list(other[0].items()) != list(kinds.items()),
            f"{path}: the attributes differ from those of the first file; give files with the same",
        )
        for path, other in zip(paths, headers, strict=True)
    )
    most = max(3, min(MOST_ROWS, MOST_VALUES // max(len(names), 1)))
    lines = ((k, line.strip()) for k, line in lines_of(paths[0]) if k >= first)
    top = list(islice(((k, line) for k, line in lines if line and line[:1] != b"%"), most))
    refuse_first([(not top, f"{paths[0]}: the file holds no rows")])
    values = (values_of(line, k, paths[0], default) for k, line in top)
    seen = list(Problems().until_fault(values))

    def texts(k: int) -> list[str]:
        return [] if NUMERIC.match(kinds[names[k]]) else column_of(seen, k)

    choice = chosen_columns(paths[0], names, len(names), reading, partial(column_of, seen))
    categorical = {k for k, first in enumerate(nominal) if first}.union(choice.categorical)
    choice = replace(choice, categorical=tuple(categorical.difference(choice.numeric)))
    choice = with_kinds(choice, texts, reading.labels is not None)
    fields = column_fields(paths, form, choice, reading)
    files = [TextFile(path, line) for path, (_, line) in zip(paths, headers, strict=True)]
    if top[0][1].startswith(b"{"):
        fields["layout"] = "sparse"
        # the rows of a block are dense for a while
        n_bytes = sum(len(line) for _, line in top)
        block_bytes = min(block_bytes, 1 + n_bytes * MOST_VALUES // (len(top) * len(names)))
    return ArffText(**fields, files=tuple(files), block_bytes=block_bytes, absent=default)
