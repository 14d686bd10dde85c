"""A learner in a file: no pickle, checked to the last byte.

Layout: the line `KOCO\\n`, the header's length (8 bytes, little endian), the header (JSON), the state's arrays as raw bytes in the order of
the header, and the SHA-256 (32 bytes) of all before it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.files import canonical_json, written_atomically
from koco_stream.lanes import aligned_zeros

if TYPE_CHECKING:
    from koco_stream.learners import Learner
    from koco_stream.model import Model

MAGIC = b"KOCO\n"
FORMAT = 1


def save_model(model: Model, path: Path) -> None:
    """Write `model` to `path`, atomically."""
    import koco_stream

    state = vars(model).get("_state")
    arrays = {} if state is None else {name: np.asarray(a, order="C") for name, a in state_arrays(state).items()}
    header = {
        "format": FORMAT,
        "learner": type(model).__name__,
        "params": vars(model).get("_in_force") or model.get_params(),
        "learnt": None if state is None else {"n_features": model.n_features_in_, "rounds": model.rounds_},
        "arrays": [{"name": n, "dtype": a.dtype.str, "shape": list(a.shape)} for n, a in arrays.items()],
        "version": koco_stream.__version__,
    }
    text = canonical_json(_plain(header)).encode()
    with written_atomically(path) as temporary, temporary.open("wb") as handle:
        digest = hashlib.sha256()
        for part in (MAGIC, struct.pack("<Q", len(text)), text, *(a.tobytes() for a in arrays.values())):
            digest.update(part)
            handle.write(part)
        handle.write(digest.digest())


def state_arrays(state: Any, prefix: str = "") -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a state by name, those of a state within it as `outer.inner`; read-only views of others are left out."""
    arrays = {}
    for name, value in state._asdict().items():
        if isinstance(value, tuple):
            arrays.update(state_arrays(value, f"{prefix}{name}."))
        elif value.flags.writeable:
            arrays[prefix + name] = value
    return arrays


def load_model(path: str | Path) -> Model:
    """Read a learner written by `save`; it is of the class that was saved.

    Raises `WrongInput` if the file is cut, altered, of a newer format, or not of this kind.
    """
    import koco_stream
    from koco_stream import models
    from koco_stream.learners import LEARNERS

    path = Path(path)
    data = path.read_bytes()
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + 40:
        raise WrongInput(f"{path} is not a koco-stream learner, or was cut short: it does not begin with a whole header")
    (length,) = struct.unpack_from("<Q", data, len(MAGIC))
    start = len(MAGIC) + 8
    sound = hashlib.sha256(data[:-32]).digest() == data[-32:]
    try:
        header: dict[str, Any] = json.loads(data[start : start + length])
        newer = int(header["format"]) > FORMAT
    except (ValueError, KeyError, TypeError, UnicodeDecodeError, MemoryError, OverflowError):
        header, newer = {}, False
    if sound and newer:
        raise WrongInput(
            f"{path} has format {header['format']} and this is koco-stream {koco_stream.__version__}, which reads up to format {FORMAT}; "
            f"it was written by version {header.get('version')}: upgrade koco-stream"
        )
    if not sound or not header:
        raise WrongInput(f"{path} was cut short or altered: its checksum does not match; use another copy")
    if header["learner"] not in LEARNERS:
        raise WrongInput(f"{path} holds a {header['learner']!r}, which this version does not have; upgrade koco-stream")
    model: Model = getattr(models, header["learner"])(**_special(header["params"]))
    if header["learnt"] is not None:
        model._start(header["learnt"]["n_features"])
        place, arrays = start + length, {}
        for entry in header["arrays"]:
            dtype, count = np.dtype(entry["dtype"]), int(np.prod(entry["shape"], dtype=np.int64))
            arrays[entry["name"]] = np.frombuffer(data, dtype, count, place).reshape(entry["shape"])
            place += count * dtype.itemsize
        try:
            model._state = _restored(model._state, arrays, _grows(LEARNERS[header["learner"]]))
        except ValueError as error:
            raise WrongInput(f"{path}: {error} does not fit this version of {header['learner']}; use the version that wrote it") from None
        model.rounds_ = int(header["learnt"]["rounds"])
    return model


def _grows(learner: Learner) -> bool:
    return hasattr(learner.module, "enlarge") or hasattr(learner.module, "with_room")


def _restored(state: Any, arrays: dict[str, np.ndarray[Any, Any]], grows: bool, prefix: str = "") -> Any:
    """The state with the saved arrays in it; they may be larger than a new state's if the learner's state grows.

    Raises `ValueError` with the name of one that does not fit.
    """
    grown = {}
    for name, value in state._asdict().items():
        if isinstance(value, tuple):
            grown[name] = _restored(value, arrays, grows, f"{prefix}{name}.")
        elif value.flags.writeable:
            saved = arrays.get(prefix + name)
            if saved is None or saved.dtype != value.dtype or saved.ndim != value.ndim or not (grows or saved.shape == value.shape):
                raise ValueError(prefix + name)
            if saved.shape != value.shape:
                aligned = aligned_zeros(1, saved.size) if saved.dtype == np.float64 else np.zeros(saved.size, saved.dtype)
                value = grown[name] = aligned.reshape(saved.shape)
            value[...] = saved
    return state._replace(**grown)


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's, infinities as text, inside nested dictionaries and lists."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": str(value)}
    return value


def _special(params: dict[str, Any]) -> dict[str, Any]:
    return {k: float(v["float"]) if isinstance(v, dict) else v for k, v in params.items()}
