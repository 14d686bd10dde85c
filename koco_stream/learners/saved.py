"""Saving learners to files, and their states as named arrays."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from koco_stream.errors import Unreadable
from koco_stream.io.array_file import opened_arrays
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import named
from koco_stream.kernels.random_features import Frequencies
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.types import Array

L = TypeVar("L")


def contents(model: Any, prefix: str = "") -> tuple[dict[str, Any], dict[str, Array]]:
    """What a file has of a learner: its name and parameters and the shape of what it has learnt,
    and the arrays of its state by name.
    """
    header = {
        "learner": model.registered().__name__,
        "params": model.stored_params(),
        "learnt": None,
    }
    if not model.__sklearn_is_fitted__():
        return header, {}
    names = vars(model).get("feature_names_in_")
    header["learnt"] = {
        "n_features": model.n_features_in_,
        "rounds": model.rounds_,
        "feature_names": None if names is None else list(names),
    }
    return header, state_arrays(model._state, prefix)


def fields_of(state: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a learner's state, those of a nested state by `outer.inner`, without what is
    drawn again from the seed.
    """
    for name, value in state._asdict().items():
        if isinstance(value, Frequencies):
            continue
        if hasattr(value, "_asdict"):
            yield from ((f"{name}.{inner}", one) for inner, one in fields_of(value))
        else:
            yield name, value


def state_arrays(state: Any, prefix: str = "") -> dict[str, Array]:
    """The arrays of a learner's state by name, without read-only views."""
    return {prefix + name: value for name, value in fields_of(state) if value.flags.writeable}


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file of a learner or `Classifier`, or `Unreadable`."""
    with named(store_path(path)), opened_arrays(store_path(path)) as (header, arrays):
        if "learner" not in header:
            raise Unreadable(
                f"{path} is not a koco-stream learner; use the file that its save wrote"
            )
        return header, dict(arrays)


def revived(
    path: Path,
    header: dict[str, Any],
    arrays: dict[str, Array],
    classes: Mapping[str, type[L]],
    otherwise: str,
    prefix: str = "",
) -> L:
    """The learner of the file `path` that header and arrays of its `contents` stand for, as
    the class that `classes` has for its name; `otherwise` says why there may be none.
    """
    with named(store_path(path)):
        name, learnt = header["learner"], header["learnt"]
        if name not in classes:
            raise Unreadable(f"{path} holds {name}, {otherwise}")
        model: Any = classes[name](**header["params"])
        if learnt is not None:
            names = learnt.get("feature_names")
            model._start(learnt["n_features"], None if names is None else np.array(names, object))
            model._state = restored(model._state, arrays, model.grows, prefix)
            model.rounds_ = int(learnt["rounds"])
    return cast(L, model)


def restored(state: Any, arrays: Mapping[str, Array], grows: bool, prefix: str = "") -> Any:
    """A learner's state with its arrays replaced by saved ones, which may be larger with `grows`.
    Raises `ValueError` if one does not fit.
    """
    for name, value in state_arrays(state).items():
        saved = arrays.get(prefix + name)
        if (
            saved is None
            or (saved.dtype, saved.ndim) != (value.dtype, value.ndim)
            or (saved.shape != value.shape and not grows)
            or any(has < least for has, least in zip(saved.shape, value.shape, strict=True))
        ):
            raise ValueError(f"{prefix}{name} does not fit this version of the learner")
        if saved.shape != value.shape:
            room = aligned_zeros(1, saved.size) if saved.dtype == np.float64 else saved.copy()
            value = room.reshape(saved.shape)
            state = _with_field(state, name, value)
        value[...] = saved
    return state


def _with_field(state: Any, name: str, value: Array) -> Any:
    outer, _, inner = name.partition(".")
    return state._replace(
        **{outer: _with_field(state._asdict()[outer], inner, value) if inner else value}
    )
