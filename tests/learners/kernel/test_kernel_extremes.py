"""Kernel learners on rows and parameters at the edge of what is allowed: numbers, or a divergence
that is reported.
"""

import numpy as np
import pytest
import scipy.sparse

import koco_stream
from koco_stream import BKONS, CONKONS, KONS, KORS, NOGD, NORMA, PROSNKONS, SketchedKONS

PREDICTING = {
    PROSNKONS: {"alpha": 1e-9},
    CONKONS: {"alpha": 1e-9},
    BKONS: {"alpha": 1e-9, "max_dictionary": 1},
    KONS: {"alpha": 1e-9},
    SketchedKONS: {"alpha": 1e-9, "sampling_floor": 0.3},
    NORMA: {"step_size": 0.1, "budget": 1},
    NOGD: {"step_size": 0.1, "budget": 30, "rank": 50},
}
KERNELS = (
    *({"kernel": "gaussian", "bandwidth": b} for b in (1.0, 1e-3, 1e6, 1e-160, 1e-200, 1e200)),
    {"kernel": "linear"},
    {"kernel": "polynomial", "degree": 3},
)
draw = np.random.default_rng(0)
BASE = draw.random((90, 3))
ROWS = {
    "one feature": BASE[:, :1],
    "one row": BASE[:1],
    "equal": np.ones((90, 3)),
    "nearly equal": 1.0 + 1e-9 * BASE,
    "zero": np.zeros((90, 3)),
    "rank one": np.outer(BASE[:, 0], [1.0, 2.0, 3.0]),
    "huge": 1e8 * BASE,
    "tiny": 1e-8 * BASE,
    "of all sizes": BASE * 10.0 ** draw.integers(-8, 9, (90, 1)),
    "overflowing": 1e150 * BASE,
    "underflowing": 1e-170 * BASE,
    "sparse": scipy.sparse.random(90, 5_000, 1e-3, "csr", dtype=np.float32, random_state=0),
}


@pytest.mark.parametrize("rows", ROWS)
def test_predictions__are_numbers_or_a_divergence_is_reported(rows):
    X = ROWS[rows]
    for kernel in KERNELS:
        for learner, params in PREDICTING.items():
            model = learner(**params, **kernel)
            try:
                predictions = model.progressive(X, np.linspace(-1.0, 1.0, X.shape[0]))
            except FloatingPointError:
                assert kernel["kernel"] != "gaussian" or learner in (KONS, SketchedKONS), (
                    learner,
                    kernel,
                )
                continue
            assert np.isfinite(predictions).all()
            assert np.isfinite(model.predict(X)).all(), (learner, kernel)


@pytest.mark.parametrize("rows", ROWS)
def test_kors__probabilities_are_probabilities(rows):
    X = ROWS[rows]
    for kernel in KERNELS:
        for ridge in (1e-300, 1e-12, 1.0, 1e12, 1e300):
            for more in ({}, {"max_dictionary": 1}, {"beta": 1e6, "epsilon": 1.0}):
                model = KORS(ridge, **more, **kernel)
                try:
                    model.progressive(X[:-1])
                    p = (
                        model.record(X[-1:]).column("inclusion_probability").to_numpy()
                        if X.shape[0] > 1
                        else np.zeros(1)
                    )
                except FloatingPointError:
                    assert rows == "overflowing"  # the kernel's own values are infinite
                    assert kernel["kernel"] == "polynomial"
                    continue
                assert ((p >= 0.0) & (p <= 1.0)).all()
                assert np.isfinite(model.weights_).all() if X.shape[0] > 1 else True


@pytest.mark.parametrize("learner", [KORS, *PREDICTING])
def test_saved_with_a_dictionary_that_has_grown__goes_on_to_the_same_bits(learner, tmp_path):
    X = scipy.sparse.random(400, 100_000, 3e-4, "csr", dtype=np.float32, random_state=1)
    y = np.sin(np.arange(400.0))
    more = {
        NORMA: {"budget": 90},
        NOGD: {"budget": 90},
        SketchedKONS: {"sampling_floor": 0.5},
        KONS: {},
    }
    whole = learner(bandwidth=4.0, **more.get(learner, {"ridge": 0.01}))
    whole.progressive(X[:237], y[:237])
    assert len(getattr(whole, "dictionary_", range(90))) > 48  # the first room
    whole.save(tmp_path / "m.koco")
    again = koco_stream.load(tmp_path / "m.koco")
    assert (
        again.progressive(X[237:], y[237:]).tobytes()
        == whole.progressive(X[237:], y[237:]).tobytes()
    )
    for model in (whole, again):
        model.save(tmp_path / f"{model is whole}.koco")
    assert (tmp_path / "True.koco").read_bytes() == (tmp_path / "False.koco").read_bytes()
