"""Streams for the kernel learners, and the comparison of a learner with the literal form of its
paper: predictions, the function learnt, what is recorded.

Nothing is fed back from what is checked: the references draw their own coins and frequencies (see
oracles/kernel_learners.py).
"""

from collections import Counter
from functools import wraps
from itertools import pairwise

import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, Phase, reject, settings
from hypothesis import strategies as st

import koco_stream
from tests.oracles.kernel_learners import REAL, features
from tests.oracles.losses import slopes

HELD_OUT = 6
SEEN: Counter[str] = Counter()  # options and rare events of the comparisons of the test that runs
LOSSES = tuple(slopes)
KERNELS = [
    *(("polynomial", 1.0, p) for p in (1, 2, 3, 3)),
    ("gaussian", 0.4, 2),
    ("gaussian", 0.8, 2),
    *3 * [("linear", 1.0, 2)],
]


def each(occur, examples=40):
    """Run a test on examples, in which all these options and rare events have to occur; or, of a
    function, those that it gives for the test's arguments.
    """

    def of(test):
        run = settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
        )(test)

        @wraps(run)
        def counted(**given):
            SEEN.clear()
            run(**given)
            wanted = occur(**given) if callable(occur) else occur
            missing = sorted(what for what in wanted if not SEEN[what])
            assert not missing, missing

        return counted

    return of


# Streams -----------------------------------------------------------------------------------------


class Stream:
    """Rows, labels, where the stream is cut, and the arguments of a learner that a stream decides.

    given: the rows as the learner gets them, the last ones not to learn from. X (n + HELD_OUT, d):
    the same as numbers, with the intercept's feature. common: loss, clip, fit_intercept.
    """

    def __init__(self, given, X, y, cuts, common, kernel):
        self.given, self.X, self.y, self.cuts = given, X, y, cuts
        self.common, self.kernel = common, kernel

    def __repr__(self):
        form = type(self.given).__name__
        return f"Stream({form} {self.given.shape}, cut {self.cuts}, {self.common}, {self.kernel})"

    def phi(self, dtype=np.float64):
        kernel = self.kernel
        return features(
            kernel["kernel"], self.X.astype(dtype), kernel["bandwidth"], kernel["degree"]
        )

    @property
    def clip(self):
        return self.common["clip"]


def labels(draw, X, loss, clip):
    """Smooth ones with noise; some are 0 and some ±clip, where the slope of a loss can be exactly
    zero."""
    y = np.clip(
        np.sin(2 * X @ draw.standard_normal(X.shape[1])) + 0.2 * draw.standard_normal(len(X)), -1, 1
    )
    if loss not in REAL:
        return np.where(y >= 0, 1.0, -1.0)
    y = np.where(draw.random(len(X)) < 0.2, np.sign(y), y) * clip
    y[draw.random(len(X)) < 0.1] = 0.0
    return y


def pick(draw, choices):
    """One of them, each as probable as the others, which hypothesis does not promise."""
    return choices[draw.integers(len(choices))]


@st.composite
def streams(choose, losses=LOSSES, kernels=tuple(KERNELS), d=(1, 5)):
    """Some 70 rows in [−1, 1], with repeated rows and empty ones."""
    draw = np.random.default_rng(choose(st.integers(0, 2**32)))
    n, width = draw.integers(40, 76), draw.integers(d[0], d[1] + 1)
    loss, clip = pick(draw, losses), pick(draw, [0.3, 1.0, 2.0])
    X = draw.uniform(-1, 1, (n + HELD_OUT, width)) * (
        draw.random((n + HELD_OUT, width)) < pick(draw, [0.5, 1.0])
    )
    for t in np.flatnonzero(draw.random(n) < pick(draw, [0.0, 0.3]))[1:]:
        X[t] = X[draw.integers(t)]
    X[draw.random(len(X)) < 0.1] = 0.0
    return dressed(draw, X, labels(draw, X[:n], loss, clip), loss, clip, pick(draw, kernels))


@st.composite
def wide_streams(choose, losses=LOSSES, kernels=(("gaussian", 1.0, 2), ("linear", 1.0, 2))):
    """140 sparse rows with 150 features, the last 70 repetitions of the first ones: dictionaries
    grow in points and features."""
    draw = np.random.default_rng(choose(st.integers(0, 2**32)))
    loss, clip = pick(draw, losses), pick(draw, [0.3, 1.0])
    X = np.zeros((140 + HELD_OUT, 150))
    for t in range(70):
        X[t, draw.choice(150, 4, replace=False)] = draw.uniform(-1, 1, 4)
    X[70:] = X[draw.integers(0, 70, len(X) - 70)]
    X[140:] *= 0.9
    return dressed(
        draw, X, labels(draw, X[:140], loss, clip), loss, clip, pick(draw, kernels), ["csr"]
    )


def dressed(draw, X, y, loss, clip, kernel, forms=("dense", "csr")):
    """The stream as it is given: dense or sparse, with an intercept or not, cut in three. In single
    precision the learners would be compiled anew.
    """
    form, intercept = pick(draw, forms), bool(draw.integers(2))
    given = X if form == "dense" else scipy.sparse.csr_matrix(X)
    if intercept:
        X = np.hstack([X, np.ones((len(X), 1))])
    names = ("kernel", "bandwidth", "degree")
    return Stream(
        given, X, y, [0, *sorted(draw.integers(1, len(y), 2)), len(y)],
        {"loss": loss, "clip": clip, "fit_intercept": intercept},
        dict(zip(names, kernel, strict=True)),
    )  # fmt: skip


# Comparison --------------------------------------------------------------------------------------


def literal(stream, reference, Phi):
    """What the reference says: its predictions (n,) and, after each piece of the stream, its
    function on the rows not learnt from."""
    predictions, functions = [], []
    for first, end in pairwise(stream.cuts):
        predictions += [reference.learn(Phi[t], stream.y[t]) for t in range(first, end)]
        functions.append([reference.predict(phi) for phi in Phi[len(stream.y) :]])
    return np.array(predictions, np.float64), np.array(functions, np.float64)


def taught(name, stream, options):
    """(the learner, its predictions (n,), its function on the rows not learnt from after each piece
    of the stream)."""
    model, predictions, functions = getattr(koco_stream, name)(**options), [], []
    for first, end in pairwise(stream.cuts):
        predictions.append(model.progressive(stream.given[first:end], stream.y[first:end]))
        functions.append(model.predict(stream.given[len(stream.y) :]))
    return model, np.concatenate(predictions), np.array(functions)


def assert_agree(name, stream, options, reference, Phi, small=1e-9):
    """Predictions and functions within `small` of the clip, or of the largest prediction if that is
    larger; the points of the dictionary, if there is one. Returns the learner."""
    expected = literal(stream, reference, Phi)
    if not reference.is_clear():
        reject()
    model, predictions, functions = taught(name, stream, options)
    for ours, theirs in zip((predictions, functions), expected, strict=True):
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=small * max(stream.clip, np.abs(theirs).max())
        )
    if hasattr(model, "dictionary_"):
        np.testing.assert_array_equal(np.sort(model.dictionary_), reference.points)
    note(stream, options, reference)
    return model


def note(stream, options, reference):
    """Count the options of a comparison that was made, and what the reference has seen."""
    points = getattr(reference, "points", [])
    numbers = ("degree", "sampling_floor", "tube")
    SEEN.update(
        f"{key} {value}"
        for key, value in options.items()
        if value is None or isinstance(value, str | bool) or key in numbers
    )
    SEEN.update(reference.seen)
    if getattr(reference, "kors", None):
        SEEN.update(reference.kors.seen)
    used = (stream.X[points] != 0).any(0).sum()
    SEEN["more than 48 points"] += len(points) > 48
    SEEN["points with more than 63 features"] += used > 63
    SEEN["sparse rows" if scipy.sparse.issparse(stream.given) else "dense rows"] += 1


def assert_recorded(name, stream, options, **expected):
    """The columns of the record of another such learner on the whole stream. Returns the record."""
    table = getattr(koco_stream, name)(**options).record(stream.given[: len(stream.y)], stream.y)
    for column, values in expected.items():
        found, values = table.column(column).to_numpy().astype(float), np.array(values, float)
        np.testing.assert_allclose(found, values, rtol=0, atol=1e-9, err_msg=column)
    return table


# Options and rare events -----------------------------------------------------------------------

sampling = st.fixed_dictionaries(
    {
        "beta": st.sampled_from([0.5, 1.0, 4.0]),
        "epsilon": st.sampled_from([0.1, 0.5, 1.0]),
        "estimate": st.sampled_from(["icml", "poster"]),
        "seed": st.one_of(st.integers(0, 100), st.integers(2**50, 2**53)),
    }
)
newton = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from([0.1, 1.0, 5.0]),
        "curvature": st.sampled_from([None, 0.2, 1.0]),
        "curvature_schedule": st.sampled_from(["constant", "decreasing"]),
    }
)
any_stream = st.one_of(streams(), streams(), wide_streams())

STREAMS = {f"loss {loss}" for loss in LOSSES} | {
    "fit_intercept True",
    "fit_intercept False",
    "sparse rows",
    "dense rows",
}
KERNEL = {
    "kernel gaussian",
    "kernel polynomial",
    "kernel linear",
    "degree 1",
    "degree 2",
    "degree 3",
}
POINTS = {"more than 48 points", "points with more than 63 features"}  # the library's first room
SAMPLING = {
    "estimate icml",
    "estimate poster",
    "certain",
    "joins with a weight above 1",
    "is not taken",
    "a repeated point joins",
}
CURVATURE = {"curvature None", "curvature_schedule constant", "curvature_schedule decreasing"}
NEWTON = (
    STREAMS | KERNEL | POINTS | CURVATURE | {"projected", "gradient 0", "gradient not 0", "φ = 0"}
)
PROS = NEWTON | SAMPLING | {"no coordinate", "something is lost or carried"}
