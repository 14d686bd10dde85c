"""Conversion of Arrow columns to finite numbers; others are rejected with their position."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.numbers import FILL_IN, LabelRule

Locate = Callable[[int], str]  # index of a value in the column → its position, for messages


def is_numeric(kind: pa.DataType) -> bool:
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    of = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(of) or types.is_large_string(of) or types.is_string_view(of))


def is_date(kind: pa.DataType) -> bool:
    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind))


def as_texts(column: pa.Array) -> pa.Array:
    """A time is that of the column's time zone."""
    kind = column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif types.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    return column.cast(pa.large_string())


def refuse(wrong: Array, locate: Locate, message: Callable[[int], str]) -> None:
    """Raise `WrongInput` for the first row where `wrong` (n,) is true."""
    if wrong.any():
        k = int(np.argmax(wrong))
        raise WrongInput(f"{locate(k)}: {message(k)}")


def refuse_nulls(column: pa.Array, locate: Locate, what: str, remedy: str = FILL_IN) -> None:
    refuse(
        column.is_null().to_numpy(zero_copy_only=False),
        locate,
        lambda _: f"{what} is null; {remedy}",
    )


def absent(column: pa.Array) -> Array:
    return np.asarray(pc.is_null(column, nan_is_null=True))


def with_missing(read: Callable[[pa.Array, Locate], Array], column: pa.Array, at: Locate) -> Array:
    """Numbers (n,) that `read` gives for a column, with NaN where a value is missing."""
    known = ~absent(column)
    where = np.flatnonzero(known)
    found = np.full(known.size, np.nan)
    found[known] = read(column.filter(pa.array(known)), lambda k: at(int(where[k])))
    return found


def numbers(column: pa.Array, locate: Locate, what: str, remedy: str = FILL_IN) -> Array:
    """A numeric column in float64 (n,); decimal fractions are rounded to the nearest value."""
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
    """Integers with more than 53 significant bits, not counting trailing zeros."""
    unsigned = raw.astype(np.uint64)
    size = np.where(raw < 0, -unsigned, unsigned)  # modulo 2^64, so also correct for −2^63
    return size // np.maximum(size & -size, 1) > 2**53


def as_matrix(columns: Sequence[pa.Array]) -> Array | None:
    """Columns as a matrix (n, k), quickly; None unless float64 has all their numbers."""
    of_numbers = (types.is_floating, types.is_integer)
    if not columns or any(
        one.null_count or not any(of(one.type) for of in of_numbers) for one in columns
    ):
        return None
    matrix = np.array([one.to_numpy() for one in columns], np.float64).T
    return matrix if np.abs(matrix).max(initial=0.0) < 2**53 else None


def encoded(
    column: pa.Array, locate: Locate, what: str, remedy: str, lacking: str | None = None
) -> tuple[Array, list[str]]:
    """Code of each row, (n,), and the distinct texts in the order of their first rows."""
    # anew, because a stored dictionary may hold texts that no row has
    texts = as_texts(column)
    texts = texts if lacking is None else texts.fill_null(lacking)
    refuse_nulls(texts, locate, what, remedy)
    coded = texts.dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()


def labels(
    column: pa.Array, locate: Locate, what: str, rule: LabelRule, remedy: str = FILL_IN
) -> Array:
    if is_text(column.type):
        codes, texts = encoded(column, locate, what, remedy)
    elif rule.text is None:
        return numbers(column, locate, what, remedy)
    else:
        distinct, codes = np.unique(numbers(column, locate, what, remedy), return_inverse=True)
        texts = [f"{number:.17g}" for number in distinct]
    known = [rule.number(text) for text in texts]
    if None in known:
        code = known.index(None)
        wrong = rule.fault(texts[code], remedy)
        raise WrongInput(f"{locate(int(np.argmax(codes == code)))}: {what} is {wrong}")
    return np.array(known, dtype=np.float64)[codes]
