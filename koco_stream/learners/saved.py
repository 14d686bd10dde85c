"""Saving learners to files, and their states as named arrays."""

from collections.abc import Mapping
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


def description(model: Any) -> dict[str, Any]:
    """Name and parameters of a learner, and the shape of what it has learnt, without its arrays."""
    learnt = None
    if vars(model).get("_state") is not None:
        learnt = {"n_features": model.n_features_in_, "rounds": model.rounds_}
        if "feature_names_in_" in vars(model):
            learnt["feature_names"] = list(model.feature_names_in_)
    return {
        "learner": model.registered().__name__,
        "params": vars(model).get("_in_force") or model.get_params(),
        "learnt": learnt,
    }


def arrays_of(model: Any) -> dict[str, Array]:
    """The arrays of a learner's state by name; none before it has learnt."""
    state = vars(model).get("_state")
    return {} if state is None else state_arrays(state)


def state_arrays(state: Any, prefix: str = "") -> dict[str, Array]:
    """The arrays of a learner's state by name, of a nested state by `outer.inner`, without what is
    drawn again from the seed and read-only views.
    """
    arrays = {}
    for name, value in state._asdict().items():
        if isinstance(value, Frequencies):
            continue
        if isinstance(value, tuple):
            arrays.update(state_arrays(value, f"{prefix}{name}."))
        elif value.flags.writeable:
            arrays[prefix + name] = value
    return arrays


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
) -> L:
    """The learner of the file `path` that a `description` and the arrays of its state stand for, as
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
            model._state = restored(model._state, arrays, model.grows)
            model.rounds_ = int(learnt["rounds"])
    return cast(L, model)


def restored(state: Any, arrays: Mapping[str, Array], grows: bool, prefix: str = "") -> Any:
    """A learner's state with its arrays replaced by saved ones, which may be larger with `grows`.
    Raises `ValueError` if one does not fit.
    """
    fields = {}
    for name, value in state._asdict().items():
        if isinstance(value, Frequencies):
            continue
        if isinstance(value, tuple):
            fields[name] = restored(value, arrays, grows, f"{prefix}{name}.")
        elif value.flags.writeable:
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
                value = fields[name] = room.reshape(saved.shape)
            value[...] = saved
    return state._replace(**fields)
