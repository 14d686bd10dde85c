"""What a record shows of a learner's state beside its predictions."""

from typing import Any

from koco_stream.kernels.dictionary import Points

# What a state may hold and a record then shows, each round: what happened rarely, how often; and
# what a dictionary did.
COUNTED = ("folds", "dense_rounds", "shrinks", "restarts")
RECORDED = {
    "inclusion_probability": float,
    "included": bool,
    "in_kors": bool,
    "dictionary_size": int,
}


def recorded(state: Any) -> dict[str, Any]:
    """What `COUNTED` and `RECORDED` name, in a state or the states within it."""
    found: dict[str, Any] = {}
    for name, value in state._asdict().items():
        if isinstance(value, Points):
            found["dictionary_size"] = int(value.n)
        elif isinstance(value, tuple):
            found.update(recorded(value))
        elif name in COUNTED:
            found[name] = int(value)
        elif name in RECORDED:
            found[name] = RECORDED[name](value)
    return found
