"""Every kernel learner against the literal form of its paper: predictions, the function learnt,
weights, probabilities, coins, points, features.
"""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from koco_stream import PKAWV
from koco_stream.learners import LEARNERS
from tests.oracles.kernel_learners import REAL, space_of, text_of
from tests.oracles.losses import curvatures, slopes

# labels beyond a small clip are among the cases
pytestmark = pytest.mark.filterwarnings("ignore:a label")

HELD_OUT = 6
KERNELS = [
    *(("polynomial", 1.0, p) for p in (1, 2, 3, 3)),
    ("gaussian", 0.4, 2),
    ("gaussian", 0.8, 2),
    *3 * [("linear", 1.0, 2)],
]

# The values of each parameter, of which every example has one, and others of some learners.
CHOICES = {
    "alpha": [0.1, 1.0, 5.0],
    "beta": [0.5, 1.0, 4.0],
    "budget": [1, 7, 60],
    "curvature": [None, 0.2, 1.0],
    "curvature_schedule": ["constant", "decreasing"],
    "epsilon": [0.1, 0.5, 1.0],
    "estimate": ["icml", "poster"],
    "fit_intercept": [False, True],
    "loss": list(slopes),
    "max_dictionary": [1, 6, 55],
    "n_frequencies": [1, 16, 33],
    "rank": [1, 6, 50],
    "regularisation": [0.0, 0.1],
    "ridge": [0.05, 1.0],
    "sampling_floor": [0.0, 0.3, 1.0],
    "seed": [*range(100), 2**50, 2**53 - 1],
    "step_schedule": ["constant", "sqrt", "linear"],
    "step_size": [0.05, 0.4],
    "threshold": [0.05, 0.3],
    "tube": [0.0, 0.1],
}
# From A = αI again with the old weights a small α overshoots, and rounding grows with it.
WEIGHTS_STAY = {"carry": ["weights"], "alpha": [1.0, 5.0]}

STREAMS = {f"loss {loss}" for loss in slopes}
STREAMS |= {"fit_intercept True", "fit_intercept False", "sparse rows", "dense rows"}
KERNEL = {f"kernel {kernel[0]}" for kernel in KERNELS} | {f"degree {p}" for p in (1, 2, 3)}
POINTS = {"more than 48 points", "points with more than 63 features"}  # the library's first room
SAMPLING = {"estimate icml", "estimate poster", "certain", "joins with a weight above 1"}
SAMPLING |= {"is not taken", "a repeated point joins"}
NEWTON = STREAMS | KERNEL | POINTS | {"beyond the clip", "gradient 0", "gradient not 0", "φ = 0"}
NEWTON |= {"curvature None", "curvature_schedule constant", "curvature_schedule decreasing"}
PROS = NEWTON | {"no coordinate", "something is lost or carried"}
BASELINE = STREAMS | POINTS | {"gradient 0"}
# Options and rare events that have to occur in the examples, their number, and other choices.
CASES = {
    "KORS": (
        KERNEL | POINTS | SAMPLING | {"max_dictionary None", "dictionary at its maximum"},
        40,
        {"ridge": [0.05, 1.0, 5.0], "max_dictionary": [None, 1, 9, 60]},
    ),
    "KONS": (NEWTON, 40, {}),
    "SketchedKONS": (
        NEWTON
        | SAMPLING
        | {"joins", "not sampled", "sampled only by the floor"}
        | {f"sampling_floor {floor}" for floor in (0.0, 0.3, 1.0)},
        80,
        {},
    ),
    "PROSNKONS": (PROS | SAMPLING, 80, {}),
    "CONKONS": (PROS | SAMPLING, 80, {"carry": ["both"]}),
    "CONKONS whose weights stay": (PROS | SAMPLING, 80, WEIGHTS_STAY),
    "BKONS": (PROS | SAMPLING | {"dictionary at its maximum"}, 80, {}),
    "NONSALD": ((PROS - {"no coordinate"}) | {"joins", "is dependent"}, 80, {}),
    "KAWV": (STREAMS | KERNEL | {"beyond the clip", "φ = 0", "a repeated row"}, 40, {}),
    "PKAWV": (
        STREAMS
        | KERNEL
        | POINTS
        | SAMPLING
        | {"beyond the clip", "φ = 0", "past rows gain a coordinate"}
        | {"a row to predict would join"},
        60,
        {},
    ),
    "NORMA": (
        BASELINE
        | KERNEL
        | {"beyond the clip", "the oldest leaves", "φ = 0", "tube 0.0", "tube 0.8"}
        | {"soft margin: error", "soft margin: no error"},
        40,
        {"step_size": [0.05, 0.3, 1.0], "tube": [0.0, 0.2, 0.8]},
    ),
    "FOGD": (STREAMS | {"within the tube", "gradient 0", "tube 0.0"}, 40, {}),
    "NOGD": (
        BASELINE
        | KERNEL
        | {"within the tube", "φ = 0", "a step on Nyström features", "tube 0.0"}
        | {"fewer features than the rank"}
        | {f"switched, rank {rank} the budget" for rank in ("below", "equal to")},
        40,
        {"step_size": [0.02, 0.1], "budget": [1, 8, 20, 50]},
    ),
    "DualSGD": (
        BASELINE
        | {"beyond the clip", "an old point leaves", "the new point leaves"}
        | {"of equals the oldest leaves"},
        40,
        {"regularisation": [0.02, 0.3, 2.0], "budget": [1, 9, 55], "n_frequencies": [1, 17]},
    ),
}
# Of the clip, or of the largest prediction; a step that overshoots multiplies rounding.
SMALL = {"NORMA": 1e-7, "CONKONS whose weights stay": 1e-8}


# Streams -----------------------------------------------------------------------------------------


def narrow(draw):
    """Some 70 rows in [−1, 1], with repeated rows and empty ones."""
    n, d = draw.integers(40, 76), draw.integers(1, 6)
    some = draw.random((n + HELD_OUT, d)) < pick(draw, [0.5, 1.0])
    X = draw.uniform(-1, 1, (n + HELD_OUT, d)) * some
    for t in np.flatnonzero(draw.random(n) < pick(draw, [0.0, 0.3]))[1:]:
        X[t] = X[draw.integers(t)]
    X[draw.random(len(X)) < 0.1] = 0.0
    return X


def wide(draw):
    """140 sparse rows with 150 features, the last 70 repetitions of the first ones: dictionaries
    grow in points and features."""
    X = np.zeros((140 + HELD_OUT, 150))
    for t in range(70):
        X[t, draw.choice(150, 4, replace=False)] = draw.uniform(-1, 1, 4)
    X[70:] = X[draw.integers(0, 70, len(X) - 70)]
    X[140:] *= 0.9
    return X


def labels(draw, X, loss, clip):
    """Smooth ones with noise; some are 0 and some ±clip, where the slope of a loss can be exactly
    zero."""
    y = np.sin(2 * X @ draw.standard_normal(X.shape[1])) + 0.2 * draw.standard_normal(len(X))
    if loss not in REAL:
        return np.where(y >= 0, 1.0, -1.0)
    y = np.where(draw.random(len(X)) < 0.2, np.sign(y), np.clip(y, -1, 1)) * clip
    y[draw.random(len(X)) < 0.1] = 0.0
    return y


def pick(draw, choices):
    return choices[draw.integers(len(choices))]


def drawn(case, seed):
    """(the learner's arguments, rows, the last of which are not learnt from, the others' labels).
    In single precision the learners would be compiled anew.
    """
    draw, learner = np.random.default_rng(seed), LEARNERS[case.split()[0]]
    is_wide = draw.random() < 1 / 3
    X = wide(draw) if is_wide else narrow(draw)
    kernels = [k for k in KERNELS if k[0] == "gaussian" or "kernel" in learner.defaults()]
    if is_wide:
        kernels = [("gaussian", 1.0, 2), *(k for k in kernels if k[0] == "linear")]
    options = {key: pick(draw, some) for key, some in (CHOICES | CASES[case][2]).items()}
    options |= zip(("kernel", "bandwidth", "degree"), pick(draw, kernels), strict=True)
    options["clip"] = pick(draw, [0.3, 1.0, 2.0])
    y = labels(draw, X[:-HELD_OUT], options["loss"], options["clip"])
    if options["curvature"] is None and options["loss"] not in curvatures:
        options["curvature"] = 0.3
    own = {"seed", *learner.defaults()}
    given = X if not is_wide and draw.random() < 0.5 else scipy.sparse.csr_matrix(X)
    return {key: value for key, value in options.items() if key in own}, given, y


# Comparison --------------------------------------------------------------------------------------


def pieces(learn, predict, X, y, cuts):
    """Predictions (n,) and, after each piece of the stream, the function on the rows not learnt
    from."""
    found, functions = [], []
    for piece in map(slice, *zip(*pairwise(cuts), strict=True)):
        found.append(learn(X[piece], y[piece]))
        functions.append(predict(X[len(y) :]))
    return np.concatenate(found).astype(float), np.array(functions, float)


def compared(case, seed):
    """Compare a learner with its text on an example; what occurred in it, nothing if rounding
    decides what is right.
    """
    name = case.split()[0]
    options, given, y = drawn(case, seed)
    X = given.toarray() if scipy.sparse.issparse(given) else given
    if options.get("fit_intercept"):
        X = np.hstack([X, np.ones((len(X), 1))])
    Phi = space_of(name, options, X)
    text, model = text_of(name, options, Phi.shape[1], float), LEARNERS[name](**options)
    cuts = [0, *np.sort(np.random.default_rng(seed).integers(1, len(y), 2)), len(y)]
    expected = pieces(
        lambda rows, labels: [text.learn(*one) for one in zip(rows, labels, strict=True)],
        lambda rows: [text.predict(phi) for phi in rows],
        *(Phi, y, cuts),
    )
    if not text.is_clear():
        return Counter()
    found = pieces(model.progressive, model.predict, given, y, cuts)
    for ours, theirs in zip(found, expected, strict=True):
        near = SMALL.get(case, 1e-9) * max(options.get("clip", 1.0), np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=near)
    check_public(name, model, text, Phi, given)
    if text.kors:
        check_record(LEARNERS[name](**options).record(given[: len(y)], y), text)
    return occurred(options, X[text.points], text, given)


def check_public(name, model, text, Phi, given):
    """Points, and a dictionary's weights; features, by their inner products where that is all that
    is defined, and the weights that they have."""
    if hasattr(model, "dictionary_"):
        assert np.sort(model.dictionary_).tolist() == text.points
    if name == "KORS":
        np.testing.assert_allclose(model.weights_, text.weights, rtol=1e-9)
    if name == "FOGD":
        np.testing.assert_allclose(model.features(given), Phi, rtol=0, atol=1e-12)
        near = 1e-9 * max(1.0, np.abs(text.w).max())
        np.testing.assert_allclose(model.coef_, text.w, rtol=0, atol=near)
    elif getattr(text, "embedded", None) and not (name == "NOGD" and text.Q is None):
        ours, theirs = (Z @ Z.T for Z in (model.features(given), text.embedded(Phi)))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * (Phi**2).sum(1).max())


def check_record(table, text):
    """Probabilities, who joins, the dictionary's size, and restarts."""
    found = {name: table.column(name).to_numpy().astype(float) for name in table.column_names}
    included = found.get("in_kors", found.get("included"))
    probabilities = getattr(text, "probabilities", text.kors.probabilities)
    np.testing.assert_allclose(included, text.kors.included)
    np.testing.assert_allclose(found["inclusion_probability"], probabilities, rtol=0, atol=1e-9)
    assert found["dictionary_size"][-1] == len(text.points)
    if "in_kors" not in found:
        assert (found["dictionary_size"] == np.cumsum(included)).all()
    if "restarts" in found:
        assert found["restarts"][-1] == text.restarts


def occurred(options, points, text, given):
    """The options of a comparison that was made, and what its text has seen."""
    seen = Counter(f"{key} {value}" for key, value in options.items())
    seen += text.seen + (text.kors.seen if text.kors else Counter())
    seen["more than 48 points"] += len(points) > 48
    seen["points with more than 63 features"] += (points != 0).any(0).sum() > 63
    seen["sparse rows" if scipy.sparse.issparse(given) else "dense rows"] += 1
    return seen


@pytest.mark.parametrize("case", CASES)
def test_learner__is_the_text_of_its_paper(case):
    occur, examples, _ = CASES[case]
    seen = sum((compared(case, seed) for seed in range(examples)), Counter())
    assert sorted(what for what in occur if not seen[what]) == []


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18,
    reason="this machine's long double has no more digits than a double",
)
@pytest.mark.filterwarnings("ignore:double precision")  # nearly dependent points are among them
@pytest.mark.parametrize(("alpha", "small"), [(1e-6, 1e-6), (1.0, 1e-9)])
@pytest.mark.parametrize("near", [1e-2, 1e-4, 1e-5])
def test_pkawv_of_nearly_repeated_points__has_its_digits(alpha, small, near):
    for seed in range(3):
        draw = np.random.default_rng(seed)
        base = draw.uniform(-1, 1, (6, 2))
        X = base[draw.integers(0, 6, 60)] + near * draw.standard_normal((60, 2))
        X[30:] = draw.uniform(-1, 1, (30, 2))
        y = np.sign(np.sin(5 * X[:, 0]))
        given = {"alpha": alpha, "ridge": 0.1, "beta": 3.0, "bandwidth": 0.7, "seed": seed}
        given["clip"] = 10.0
        Phi = space_of("PKAWV", given, X.astype(np.longdouble))
        text = text_of("PKAWV", given, Phi.shape[1], np.longdouble)
        expected = np.array([text.learn(*one) for one in zip(Phi, y, strict=True)], float)
        model = PKAWV(**given)
        np.testing.assert_allclose(model.progressive(X, y), expected, rtol=0, atol=10 * small)
        assert model.dictionary_.tolist() == text.points
        assert len(text.points) > 40
