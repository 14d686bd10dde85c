"""Which runs of a cohort are advanced together: those that share kernel values, or lines."""

from collections.abc import Sequence
from typing import Any

from koco_stream.learners.saved import state_arrays
from koco_stream.learners.shared_kernel_scan import SharedKernelLearner
from koco_stream.learners.shared_lines import (
    FEWEST,
    Place,
    laid_side_by_side,
    portions,
    shares_lines,
)
from koco_stream.runs.run import RunState


def lay_side_by_side(run_states: Sequence[RunState]) -> None:
    """Put the states of runs that have not begun side by side, where their learner can share lines.

    They stay there to the end of the cohort. The states of a run are in one group: the classes of
    one run lie side by side, or if they are too few for a table, each class of several runs does.
    """
    alike: dict[tuple[Any, ...], list[RunState]] = {}
    for one in run_states:
        if one.states and shares_lines(one.run.learner_class):
            (array,) = one.states[0]
            key = one.run.learner_class, one.run.adds_intercept, array.dtype, array.shape
            alike.setdefault(key, []).append(one)
    for runs in alike.values():
        classes = len(runs[0].states)
        singly = [slice(k, k + 1) for k in range(len(runs))]
        for these in portions(len(runs)) if classes < FEWEST else singly:
            some = runs[these]
            laid = laid_side_by_side([one.states[c] for c in range(classes) for one in some])
            for k, one in enumerate(some):
                one.states = laid[k :: len(some)]


def place_of(run_state: RunState) -> Place | None:
    """Where a run's first state lies side by side with others; None if it does not."""
    if not run_state.states or not shares_lines(run_state.run.learner_class):
        return None
    return Place.of(run_state.states[0])


def groups_of(run_states: Sequence[RunState]) -> list[tuple[bool, list[RunState]]]:
    """The runs in groups that share work, each with whether an intercept is added to its rows.

    Runs that share nothing are groups of their own.
    """
    groups: dict[tuple[bool, Any], list[RunState]] = {}
    for i, one in enumerate(run_states):
        key: Any = i
        if issubclass(one.run.learner_class, SharedKernelLearner):
            key = one.params.kernel
        elif (place := place_of(one)) is not None:
            key = "lines", id(place.room)
        groups.setdefault((one.run.adds_intercept, key), []).append(one)
    return [(intercept, group) for (intercept, _), group in groups.items()]


def turn_bytes(run_state: RunState) -> int:
    """The bytes that a run's turn brings back into the processor's cache, those beside it too."""
    place = place_of(run_state)
    sizes = [
        sum(array.nbytes for array in state_arrays(state).values()) for state in run_state.states
    ]
    return max(sizes, default=0) * (1 if place is None else place.width)
