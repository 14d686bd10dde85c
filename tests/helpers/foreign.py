"""Running foreign learners on blocks of rows, and Vowpal Wabbit's own program beside them."""

import re
import subprocess
import sys
from contextlib import closing

import numpy as np
from scipy.sparse import csr_matrix

from koco_stream.learners.foreign.learner import foreign_learner
from koco_stream.streams.inputs import as_rows

CLASSES = "tests.helpers.foreign_classes"


def started(name, arguments, n_features, seed=0, dense=True, time_limit=60.0):
    """A learner's class, its parameters and its state."""
    learner = foreign_learner(name)
    params = learner.to_params(learner.complete(arguments))._replace(time_limit=time_limit)
    return learner, params, learner.initial_state(params, n_features, seed, dense)


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
    """The predictions of a foreign learner for all rows of X, dense if no value of them is 0."""
    rows = as_rows(X)
    dense = not rows.index_stride if dense is None else dense
    learner, params, state = started(name, arguments, rows.n_features, seed, dense)
    with closing(state):
        predictions, rounds = advanced(learner, params, state, rows, labels, cuts)
    assert rounds == state.rounds == labels.size
    assert 0.0 < state.seconds < 60.0
    return predictions


def as_lines(X, labels):
    X = csr_matrix(X)
    for t, label in enumerate(labels.tolist()):
        these = slice(X.indptr[t], X.indptr[t + 1])
        row = zip(X.indices[these].tolist(), X.data[these].tolist(), strict=True)
        yield f"{label:.9g} |" + "".join(f" {j}:{v:.9g}" for j, v in row)


def own_program(options, X, labels, folder):
    """The mean loss that Vowpal Wabbit's own program reports, and the predictions it writes."""
    text, written = folder / "rows.vw", folder / "predictions"
    text.write_text("\n".join(as_lines(X, labels)) + "\n")
    words = [sys.executable, "-m", "vowpalwabbit", "-d", text, "-p", written, *options.split()]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = re.search(r"average loss = (\S+)", done.stdout + done.stderr)
    return float(found[1]), np.loadtxt(written)
