"""The columns that `Learner.record` takes from a learner's state."""

from typing import Any

from koco_stream.kernels.dictionary import Points

# Fields of a state that a record shows for each round, if the state has them: cumulative counts of
# rare events, and the events of a dictionary.
COUNTED = ("doubtful_rounds", "folds", "dense_rounds", "shrinks", "restarts")
RECORDED = {
    "inclusion_probability": float,
    "included": bool,
    "in_kors": bool,
    "dictionary_size": int,
}


def recorded(state: Any) -> dict[str, Any]:
    """What a learner tells of its last round, from its state: by column of `Learner.record`."""
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


def doubtful_rounds(states: list[Any]) -> int:
    """The rounds of these states, a class each, for whose predictions double precision cannot vouch
    (`koco_stream.losses.in_doubt`).
    """
    return sum(recorded(state).get("doubtful_rounds", 0) for state in states)
