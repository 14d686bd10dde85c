"""The columns that `Learner.record` takes from a learner's state."""

from typing import Any

from koco_stream.learners.saved import fields_of

# Fields of a state that a record shows for each round, if the state has them: cumulative counts of
# rare events, and the events of a dictionary.
COUNTED = (
    *("doubtful_rounds", "folds", "dense_rounds", "shrinks", "restarts"),
    "labels_beyond_clip",
)
RECORDED = {
    "inclusion_probability": float,
    "included": bool,
    "in_kors": bool,
    "dictionary_size": int,
    "weights": list,
}


def recorded(state: Any) -> dict[str, Any]:
    """What a learner tells of its last round, from its state: by column of `Learner.record`."""
    found: dict[str, Any] = {}
    for name, value in fields_of(state):
        column = "dictionary_size" if name.endswith("points.n") else name.rpartition(".")[2]
        if name.startswith("members."):  # of a mixture: those of the member that has most
            if column == "doubtful_rounds":
                found[column] = max(int(value), found.get(column, 0))
        elif column in COUNTED or column in RECORDED:
            found[column] = RECORDED.get(column, int)(value)
    return found


def doubtful_rounds(states: list[Any]) -> int:
    """The rounds of these states, a class each, for whose predictions double precision cannot vouch
    (`koco_stream.losses.in_doubt`).
    """
    return sum(recorded(state).get("doubtful_rounds", 0) for state in states)
