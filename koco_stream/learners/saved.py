"""A learner in a file, and its state as named arrays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.array_file import NotWhole, TooNew, read_arrays, write_arrays
from koco_stream.io.files import written_atomically
from koco_stream.numerics.llvm.feature_lines import aligned_zeros
from koco_stream.types import Array
from koco_stream.version import __version__

L = TypeVar("L")

FORMAT = 1


def save_model(model: Any, path: Path) -> None:
    """Write `model` to `path`, atomically."""
    state, names = vars(model).get("_state"), vars(model).get("feature_names_in_")
    named = {} if names is None else {"feature_names": list(names)}
    header = {
        "format": FORMAT,
        "learner": model.registered().__name__,
        "params": vars(model).get("_in_force") or model.get_params(),
        "learnt": (
            None
            if state is None
            else {"n_features": model.n_features_in_, "rounds": model.rounds_, **named}
        ),
        "version": __version__,
    }
    with written_atomically(path) as temporary:
        write_arrays(temporary, header, {} if state is None else state_arrays(state))


def state_arrays(state: Any, prefix: str = "") -> dict[str, Array]:
    """The arrays of a state by name, those of a state within it as `outer.inner`; read-only views
    of others are left out.
    """
    arrays = {}
    for name, value in state._asdict().items():
        if isinstance(value, tuple):
            arrays.update(state_arrays(value, f"{prefix}{name}."))
        elif value.flags.writeable:
            arrays[prefix + name] = value
    return arrays


def load_into(path: str | Path, class_of: Callable[[str], type[L]]) -> L:
    """Read a learner written by `save`, of the class that `class_of` gives for the learner's name.

    Raises `WrongInput` if the file is cut, altered, of a newer format or not of this kind.
    """
    path = Path(path)
    try:
        header, arrays = read_arrays(path.read_bytes(), FORMAT)
    except NotWhole as error:
        raise WrongInput(
            f"{path} is not a koco-stream learner, or was cut short or altered: {error}; use"
            " another copy"
        ) from None
    except TooNew as error:
        raise WrongInput(
            f"{path} has format {error.header['format']} and this is koco-stream"
            f" {__version__}, which reads up to format {FORMAT}; it was written by"
            f" version {error.header.get('version')}: upgrade koco-stream"
        ) from None
    if "learner" not in header:
        raise WrongInput(f"{path} is not a koco-stream learner; use the file that its save wrote")
    learner = class_of(header["learner"])
    model: Any = learner(**header["params"])
    if header["learnt"] is not None:
        names = header["learnt"].get("feature_names")
        model._start(
            header["learnt"]["n_features"], None if names is None else np.array(names, object)
        )
        try:
            model._state = filled(model, arrays)
        except ValueError as error:
            raise WrongInput(
                f"{path}: {error} does not fit this version of {header['learner']}; use the version"
                " that wrote it"
            ) from None
        model.rounds_ = int(header["learnt"]["rounds"])
    return cast(L, model)


def filled(model: Any, arrays: dict[str, Array]) -> Any:
    """The state of `model`, which has begun to learn, with the arrays of `state_arrays` in it.

    Raises `ValueError` as `restored` does.
    """
    return restored(model._state, arrays, model.grows)


def restored(state: Any, arrays: dict[str, Array], grows: bool, prefix: str = "") -> Any:
    """The state with the saved arrays in it; they may be larger than a new state's if the learner's
    state grows.

    Raises `ValueError` with the name of one that does not fit.
    """
    grown = {}
    for name, value in state._asdict().items():
        if isinstance(value, tuple):
            grown[name] = restored(value, arrays, grows, f"{prefix}{name}.")
        elif value.flags.writeable:
            saved = arrays.get(
                prefix + name, value if value.size == 0 else None
            )  # an empty one need not be in the file
            if (
                saved is None
                or saved.dtype != value.dtype
                or saved.ndim != value.ndim
                or not (grows or saved.shape == value.shape)
            ):
                raise ValueError(prefix + name)
            if saved.shape != value.shape:
                aligned = (
                    aligned_zeros(1, saved.size)
                    if saved.dtype == np.float64
                    else np.zeros(saved.size, saved.dtype)
                )
                value = grown[name] = aligned.reshape(saved.shape)
            value[...] = saved
    return state._replace(**grown)
