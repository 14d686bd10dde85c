"""Running foreign learners on blocks of rows."""

from contextlib import closing

import numpy as np

from koco_stream.learners.foreign.learner import foreign_learner
from koco_stream.streams.inputs import as_rows

CLASSES = "tests.helpers.foreign_classes"


def started(name, arguments, n_features, seed=0, dense=None):
    """A learner's class, its parameters and its state."""
    learner = foreign_learner(name)
    params = learner.to_params(learner.complete(arguments))
    return learner, params, learner.init(params, n_features, seed, dense)


def advanced(learner, params, state, rows, labels, cuts=()):
    """The predictions of blocks that end at `cuts`, and the rounds done."""
    predictions, rounds = np.full(labels.size, np.inf), 0
    ends = [*cuts, labels.size]
    for lo, hi in zip([0, *ends], ends, strict=False):
        block = rows._replace(indptr=rows.indptr[lo : hi + 1])
        state, done = learner.advance(params, state, block, labels[lo:hi], predictions[lo:hi])
        rounds += done
        if done < hi - lo:
            break
    return predictions, rounds


def scores(name, arguments, X, labels, cuts=(), seed=0, dense=None):
    """The predictions of a foreign learner for all rows of X."""
    rows = as_rows(X)
    learner, params, state = started(name, arguments, rows.n_features, seed, dense)
    with closing(state):
        predictions, rounds = advanced(learner, params, state, rows, labels, cuts)
    assert rounds == state.rounds == labels.size
    assert 0.0 < state.seconds < 60.0
    return predictions
