"""Conversion of Arrow columns to finite, exactly represented numbers.

Other values are rejected with their position.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import types

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.numbers import LabelRule

Locate = Callable[[int], str]  # index of a value in the column → its position, for messages

EXAMPLE = "give its number with --labels, for example --labels 'g=1,b=-1'"


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


def refuse_nulls(column: pa.Array, locate: Locate, what: str) -> None:
    """Raise `WrongInput` for the first null of a column, which `what` describes in the message."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise WrongInput(f"{locate(row)}: {what} is null; remove the row or fill the value in")


def numbers(column: pa.Array, locate: Locate, what: str) -> Array:
    """Convert a numeric column to float64 (n,); decimal fractions are rounded to the nearest value.

    Raises `WrongInput` with the position of the first value that is null, not finite, or an integer
    that float64 cannot represent exactly.
    """
    refuse_nulls(column, locate, what)
    if types.is_decimal(column.type):
        # conversion via text rounds correctly; a direct cast to float64 does not
        column = column.cast(pa.string()).cast(pa.float64())
    elif types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    raw = column.to_numpy(zero_copy_only=False)
    values = raw.astype(np.float64)
    if raw.dtype in (np.int64, np.uint64) and (inexact := _inexact(raw)).any():
        row = int(np.flatnonzero(inexact)[0])
        raise WrongInput(
            f"{locate(row)}: {what} is {raw[row]}, beyond 2^53, where not all integers can be held;"
            " store it as a float"
        )
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise WrongInput(
            f"{locate(row)}: {what} is {values[row]}, not a finite number; remove the row or fill"
            " the value in"
        )
    return values


def _inexact(raw: Array) -> Array:
    """Mask of the integers that float64 cannot represent exactly.

    These have more than 53 significant bits, not counting trailing zeros.
    """
    unsigned = raw.astype(np.uint64)
    size = np.where(raw < 0, -unsigned, unsigned)  # modulo 2^64, so also correct for −2^63
    lowest = np.maximum(size & -size, 1)
    return size // lowest > 2**53


def encoded(column: pa.Array, locate: Locate, what: str) -> tuple[Array, list[str]]:
    """Dictionary-encode a text column as (code of each row, (n,); distinct texts).

    Raises `WrongInput` for a null.
    """
    if not types.is_dictionary(column.type):
        column = column.dictionary_encode()
    refuse_nulls(column, locate, what)
    return column.indices.to_numpy(zero_copy_only=False), column.dictionary.to_pylist()


def labels(column: pa.Array, rule: LabelRule, locate: Locate, what: str) -> Array:
    """Labels (n,) of a column of numbers or texts, mapped by `rule`.

    Raises `WrongInput` with the position of the first value that the rule does not have.
    """
    if is_text(column.type):
        codes, texts = encoded(column, locate, what)
    elif rule.text is None:
        return numbers(column, locate, what)
    else:
        distinct, codes = np.unique(numbers(column, locate, what), return_inverse=True)
        texts = [f"{number:.17g}" for number in distinct]
    known = np.full(len(texts), np.nan)  # a dictionary may hold texts that no row has
    met, first = np.unique(codes, return_index=True)
    for k in np.argsort(first):
        code, row = met[k], int(first[k])
        try:
            known[code] = rule(texts[code].encode(), Path(), 0, what)
        except WrongInput:
            remedy = EXAMPLE if rule.text is None else f"add it to --labels {rule.text!r}"
            raise WrongInput(f"{locate(row)}: {what} is {texts[code][:60]!r}; {remedy}") from None
    return known[codes]
