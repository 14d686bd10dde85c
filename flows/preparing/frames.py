"""Data frames, tables and arrays of Python as tables of Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput, nearest
from storage.sources.arrow import as_texts, is_numeric

LISTS = ("drop", "categorical", "numeric", "strip")  # options that may be repeated
OTHERS = (
    "each column needs a name of its own and one kind of values, numbers, texts or times;"
    " frame[column].astype(str) makes texts of others"
)


def with_columns(data: Any) -> Any:
    """The data, if they have columns."""
    data = data.collect() if hasattr(data, "collect") else data  # a lazy frame of Polars
    flat = len(getattr(data, "shape", (0, 0))) != 2  # a structured array is not
    if (flat and not getattr(getattr(data, "dtype", None), "names", None)) or not any(
        hasattr(data, one) for one in ("columns", "keys", "__array__", "__arrow_c_stream__")
    ):
        raise WrongInput(
            f"{type(data).__name__} is no data frame, Arrow table or array of two dimensions, whose"
            " columns are features and the target; of features X and labels y, pandas.DataFrame"
            f"{'.sparse.from_spmatrix' * hasattr(data, 'tocsr')}(X).add_prefix('x').assign(y=y)"
            " makes one"
        )
    return data


def option_of(name: str, value: Any) -> Any:
    """An option as the command gives it: names of columns as texts, labels as a rule."""
    if name in LISTS:
        return tuple(map(str, [value] if isinstance(value, str | int) else value))
    if isinstance(value, Mapping):
        return ",".join(f"{text}={number}" for text, number in value.items())
    return value


def as_table(data: Any, given: dict[str, Any]) -> pa.Table:
    if any(hasattr(kind, "fill_value") for kind in list(getattr(data, "dtypes", ()))):
        data = of_sparse(data, given)
    try:
        if isinstance(data, np.ndarray):
            fields = {name: data[name] for name in data.dtype.names or ()}
            columns = fields or enumerate(data.T, 1)
            return pa.table({f"{name}": column for name, column in dict(columns).items()})
        table = pa.table(data.to_arrow() if hasattr(data, "to_arrow") else data)  # of Polars
    except (pa.ArrowException, ValueError, TypeError) as error:
        said = "; ".join(map(str, error.args))
        raise WrongInput(
            f"{type(data).__name__} is no data frame, Arrow table or array of two dimensions that"
            f" can be prepared: {said}; {OTHERS}"
        ) from None
    for k, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if pa.types.is_dictionary(kind) and is_numeric(kind.value_type):  # categories
            table = table.set_column(k, name, as_texts(table.column(k)))
    return table


def of_sparse(frame: Any, given: dict[str, Any]) -> Any:
    """What Arrow takes of a data frame of pandas with sparse columns: prepared rows if all features
    are sparse, and no option is for columns; otherwise a dense frame.
    """
    names = [*map(str, frame.columns)]
    target = given.get("target", names[-1])
    if target not in names:
        raise WrongInput(f"target={target!r}: no such column{nearest(target, names)}")
    k = names.index(target)
    features = frame.iloc[:, [j for j in range(len(names)) if j != k]]
    sparse = all(getattr(kind, "fill_value", None) == 0 for kind in features.dtypes)
    if not sparse or {*LISTS, "missing", "one_hot"} & given.keys():
        return frame.astype(
            {name: kind.subtype for name, kind in frame.dtypes.items() if hasattr(kind, "subtype")}
        )
    given.pop("target", None)  # the label, of prepared rows
    rows = features.sparse.to_coo().tocsr()
    offsets = pa.array(rows.indptr, pa.int64())
    return pa.table(
        {
            "label": np.asarray(frame.iloc[:, k]),
            "indices": pa.LargeListArray.from_arrays(offsets, pa.array(rows.indices)),
            "values": pa.LargeListArray.from_arrays(offsets, pa.array(rows.data)),
        },
        metadata={"n_features": f"{rows.shape[1]}"},
    )
