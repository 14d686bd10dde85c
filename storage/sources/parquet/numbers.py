"""Conversion of Arrow columns to finite numbers; others are rejected with their position."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.numbers import EXAMPLE, FILL_IN, REWRITE, LabelRule, is_other_number
from storage.sources.source import PIECE_BYTES, Source

Locate = Callable[[int], str]  # index of a value in the column → its position, for messages


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers."""
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def refuse(wrong: Array, locate: Locate, message: Callable[[int], str]) -> None:
    """Raise `WrongInput` for the first row k of a column where `wrong` (n,) is true, if any is.

    `locate(k)` names the row's file and number, and `message(k)` says what is wrong there.
    """
    if wrong.any():
        k = int(np.argmax(wrong))
        raise WrongInput(f"{locate(k)}: {message(k)}")


def refuse_nulls(column: pa.Array, locate: Locate, what: str, remedy: str = FILL_IN) -> None:
    """Raise `WrongInput` for the first null of a column, which `what` describes in the message."""
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        refuse(nulls, locate, lambda _: f"{what} is null; {remedy}")


def is_missing(column: pa.Array) -> Array:
    """Mask (n,) of the nulls and NaN of a column."""
    mask: Array = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
    return mask


def with_missing(read: Callable[[pa.Array, Locate], Array], column: pa.Array, at: Locate) -> Array:
    """Numbers (n,) that `read` gives for the values of a column, with NaN where one is missing."""
    known = ~is_missing(column)
    where = np.flatnonzero(known)
    found = np.full(known.size, np.nan)
    found[known] = read(column.filter(pa.array(known)), lambda k: at(int(where[k])))
    return found


def numbers(
    column: pa.Array, locate: Locate, what: str, may_miss: bool = False, remedy: str = FILL_IN
) -> Array:
    """Convert a numeric column to float64 (n,); decimal fractions are rounded to the nearest value.

    Missing values are NaN if they `may_miss`. Otherwise this raises `WrongInput` for them with
    `remedy`, as for the first value that is not finite, or an integer that float64 cannot represent
    exactly.
    """
    if may_miss:
        return with_missing(lambda some, at: numbers(some, at, what), column, locate)
    refuse_nulls(column, locate, what, remedy)
    if types.is_decimal(column.type):
        # conversion via text rounds correctly; a direct cast to float64 does not
        column = column.cast(pa.string()).cast(pa.float64())
    elif types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    raw = column.to_numpy(zero_copy_only=False)
    values = raw.astype(np.float64)
    if raw.dtype in (np.int64, np.uint64):
        refuse(
            _inexact(raw),
            locate,
            lambda k: (
                f"{what} is {raw[k]}, beyond 2^53, where not all integers can be held; store it as"
                " a float"
            ),
        )
    refuse(np.isnan(values), locate, lambda k: f"{what} is nan, not a finite number; {remedy}")
    refuse(
        np.isinf(values), locate, lambda k: f"{what} is {values[k]}, not a finite number; {FILL_IN}"
    )
    return values


def _inexact(raw: Array) -> Array:
    """Mask of the integers with more than 53 significant bits, not counting trailing zeros."""
    unsigned = raw.astype(np.uint64)
    size = np.where(raw < 0, -unsigned, unsigned)  # modulo 2^64, so also correct for −2^63
    return size // np.maximum(size & -size, 1) > 2**53


def encoded(
    column: pa.Array,
    locate: Locate,
    what: str,
    may_miss: bool = False,
    remedy: str = FILL_IN,
    no_numbers: bool = False,
) -> tuple[Array, list[str]]:
    """Encode a text column as (code of each row, (n,); distinct texts).

    A null is an empty text if it `may_miss`; otherwise this raises `WrongInput` for it, and if
    there are to be `no_numbers` among the texts, for a number in another notation.
    """
    # anew, because a stored dictionary may hold texts that no row has
    texts = column.cast(pa.large_string())
    if may_miss:
        texts = texts.fill_null("")
    refuse_nulls(texts, locate, what, remedy)
    coded = texts.dictionary_encode()
    codes, known = coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
    if no_numbers:
        others = np.array([is_other_number(text.strip()) for text in known], bool)
        refuse(others[codes], locate, lambda k: f"{what} is {known[codes[k]]!r}; {REWRITE}")
    return codes, known


def labels(
    column: pa.Array,
    rule: LabelRule,
    locate: Locate,
    what: str,
    may_miss: bool = False,
    remedy: str = FILL_IN,
) -> Array:
    """Labels (n,) of a column of numbers or texts, mapped by `rule`.

    Missing labels are NaN if they `may_miss`. Otherwise this raises `WrongInput` for them with
    `remedy`, as for a value that the rule does not have.
    """
    if may_miss:
        return with_missing(lambda some, at: labels(some, rule, at, what), column, locate)
    if is_text(column.type):
        codes, texts = encoded(column, locate, what, remedy=remedy)
    elif rule.text is None:
        return numbers(column, locate, what, remedy=remedy)
    else:
        found = numbers(column, locate, what, remedy=remedy)
        distinct, codes = np.unique(found, return_inverse=True)
        texts = [f"{number:.17g}" for number in distinct]
    known = [rule.number(text) for text in texts]
    if None in known:
        code = known.index(None)
        correct = EXAMPLE if rule.text is None else f"add it to --labels {rule.text!r}"
        correct = f"{REWRITE}, or {correct}" if is_other_number(texts[code].strip()) else correct
        raise WrongInput(
            f"{locate(int(np.argmax(codes == code)))}: {what} is {texts[code][:60]!r}; {correct}"
        )
    return np.array(known, dtype=np.float64)[codes]


GROUP_BYTES = 4 * PIECE_BYTES  # row groups up to this size in memory are read as one slice
ROW_BYTES = 64  # bytes that a row adds to the progress, whatever its size


class Slice(NamedTuple):
    """Consecutive rows of one row group.

    Row groups and rows are counted from 0. `file` is the scratch file with the decoded rows, if the
    row group was split.
    """

    path: Path
    group: int
    first: int
    n_rows: int
    file: Path | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes that the slice adds to the progress."""
        return self.n_rows * ROW_BYTES

    def at(self, row: int) -> str:
        """Position of row `row` (from 0) of the slice as text for messages, which count from 1."""
        return f"{self.path}, row group {self.group + 1}, row {self.first + int(row) + 1}"


@contextmanager
def opened(path: Path, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; the columns `texts` are read as dictionaries.

    Errors of Arrow inside the context are raised as `WrongInput` with the file's path. Raises
    `OSError` for a file that cannot be read.
    """
    # raises the system's own error, such as a missing permission, before Arrow rewords it
    with path.open("rb"):
        pass
    try:
        with pq.ParquetFile(
            path,
            read_dictionary=list(texts),
            pre_buffer=False,
            buffer_size=1 << 16,
            page_checksum_verification=True,
        ) as file:
            # fails for column names that are not valid UTF-8
            file.schema_arrow.to_string(show_schema_metadata=False)
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            raise
        said = str(error).split("\n")[0]
        raise WrongInput(
            f"{path}: not a Parquet file, or damaged or cut short ({said}); fetch or write it again"
        ) from None


def batches_of(
    file: pq.ParquetFile, group: int, columns: Sequence[str], at_once: int
) -> Iterator[pa.RecordBatch]:
    """Decode a row group in batches of `at_once` rows.

    Every batch is fully validated, because for a damaged file Arrow reads beyond a dictionary's
    end.
    """
    n_rows = 0
    for batch in file.iter_batches(
        at_once, row_groups=[group], columns=list(columns), use_threads=False
    ):
        batch.validate(full=True)
        n_rows += batch.num_rows
        yield batch
    if n_rows != file.metadata.row_group(group).num_rows:
        raise pa.ArrowInvalid(
            f"row group {group + 1} has {n_rows} rows, and its metadata say otherwise"
        )


@dataclass(kw_only=True)
class ParquetRows(Source):
    """Base class of the Parquet sources; the rows of several files are concatenated in order.

    `texts` are the columns that are read as dictionaries, and `rule` maps labels to numbers.
    """

    rule: LabelRule
    texts: tuple[str, ...]

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns that are read."""

    @abstractmethod
    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """Estimated memory in bytes of a Parquet row group after decoding to a piece."""

    def pieces(self, scratch: Path) -> Iterator[Slice]:
        """Slices of all files; those of large row groups are written to `scratch`.

        Raises `WrongInput` for a damaged file.
        """
        for number, path in enumerate(self.paths):
            first = 0
            with opened(path, self.texts) as file:
                for group in range(file.num_row_groups):
                    whole = Slice(path, group, first, file.metadata.row_group(group).num_rows)
                    first += whole.n_rows
                    size = self.decoded_bytes(file, group) if whole.n_rows else 0
                    if size > GROUP_BYTES:
                        prefix = f"{scratch / f'slice-{number}-{group}'}"
                        yield from self._split(
                            file, whole, whole.n_rows * PIECE_BYTES // size, prefix
                        )
                    elif whole.n_rows:
                        yield whole

    def _split(
        self, file: pq.ParquetFile, whole: Slice, at_once: int, prefix: str
    ) -> Iterator[Slice]:
        """Split a large row group into slices of `at_once` rows, each written to its own file."""
        first = whole.first
        for batch in batches_of(file, whole.group, self.columns, max(at_once, 1)):
            target = Path(f"{prefix}-{first}.arrow")
            with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as out:
                out.write_batch(batch)
            yield Slice(whole.path, whole.group, first, batch.num_rows, target)
            first += batch.num_rows

    def decoded(self, piece: Slice) -> pa.RecordBatch:
        """Columns of a slice."""
        if piece.file is not None:
            with pa.OSFile(str(piece.file), "rb") as handle:
                return pa.ipc.open_file(handle).get_batch(0)
        with opened(piece.path, self.texts) as file:
            batches = batches_of(file, piece.group, self.columns, piece.n_rows)
            return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]

    def release(self, piece: Slice) -> None:
        """Delete the scratch file of a slice, if there is one."""
        if piece.file is not None:
            piece.file.unlink(missing_ok=True)
