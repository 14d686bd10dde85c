"""Several states that learn from the same rows: those of a cohort's runs, or of a run's classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.shared_kernel_scan import SharedKernelLearner, SharedKernelScan
from koco_stream.learners.shared_lines import advance_table, tables_of
from koco_stream.streams.rows import Rows, frozen, with_intercept
from koco_stream.types import Array


def advance_states(
    learners: Sequence[Any],
    params: Sequence[Any],
    states: Sequence[Any],
    rows: Rows,
    labels: Array,
    predictions: Array,
) -> tuple[list[Any], list[int], dict[int, Exception]]:
    """Advance states over a block of rows, with kernel values computed once if all need the same,
    and rows gathered once for states that lie side by side.

    Each state has the bits that it would have by itself.

    Parameters
    ----------
    learners, params, states : sequence
        The learner class, the parameters and the state of each. Learners that need kernel values
        have one kernel and the same past rows. States that lie side by side have one learner.
    rows : Rows
        The rows (n, d).
    labels : ndarray of shape (k, n)
        The labels that each state learns.
    predictions : ndarray of shape (k, n)
        Filled with the predictions.

    Returns
    -------
    states : list
        The new states.
    done : list of int
        The rounds that each has done; fewer than n if a prediction was not finite.
    failures : dict of int to Exception
        By number, what a state's learner has raised. Others are not affected.
    """
    if issubclass(learners[0], SharedKernelLearner):
        scan = SharedKernelScan(learners, params, states, rows)
        done = scan.advance(frozen(labels, np.float64), predictions)
        return scan.states, done, scan.failures
    advanced, done, failures = list(states), [0] * len(states), dict[int, Exception]()
    tables, single = tables_of(learners[0], states)
    for these in tables:
        try:
            rounds = advance_table(learners[0], params, states, these, rows, labels, predictions)
        except Exception as error:  # of all in this table
            failures |= dict.fromkeys(these, error)
            continue
        for i, count in zip(these, rounds, strict=True):
            done[i] = count
    for i in single:
        try:
            advanced[i], done[i] = learners[i].advance(
                params[i], states[i], rows, labels[i], predictions[i]
            )
        except Exception as error:  # of this one
            failures[i] = error
    return advanced, done, failures


def side_by_side(learners: Sequence[Learner], X: Any, labels: Array) -> Array:
    """Let learners that have the same parameters and past rows learn from X (n, d) in one pass.

    Parameters
    ----------
    learners : sequence of Learner
        The learners.
    X : array-like of shape (n, d)
        As for `Learner.progressive`.
    labels : ndarray of shape (k, n)
        The labels of each.

    Returns
    -------
    ndarray of shape (k, n)
        The predictions of each, made before its label was seen.

    Raises
    ------
    WrongInput
        As `Learner.progressive` does.
    FloatingPointError
        A prediction is not finite; all learners then count as diverged.
    """
    rows, _ = learners[0].begin(X, labels[0])
    for learner, y in zip(learners[1:], labels[1:], strict=True):
        learner.begin(rows, y)
    if learners[0].fit_intercept:
        rows = with_intercept(rows)
    predictions = np.empty(labels.shape)
    states, done, failures = advance_states(
        [type(learner) for learner in learners],
        [learner._params for learner in learners],
        [learner._state for learner in learners],
        rows,
        frozen(labels, np.float64),
        predictions,
    )
    for learner, state, rounds in zip(learners, states, done, strict=True):
        learner._state = state
        learner.rounds_ += rounds
    if failures:
        raise next(iter(failures.values()))
    if min(done) < rows.n_rows:
        for learner in learners:
            learner._diverged = True
        k = done.index(min(done))
        raise learners[k].divergence(done[k], predictions[k, done[k]])
    return predictions
