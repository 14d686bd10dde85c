"""Kernel learners on rows and parameters at the edge of what is allowed: numbers, or a divergence
that is reported; and dictionaries that have grown.
"""

from itertools import product

import numpy as np
import pytest
import scipy.sparse

import koco_stream
from koco_stream import (
    BKONS,
    CONKONS,
    KAWV,
    KONS,
    KORS,
    NOGD,
    NONSALD,
    NORMA,
    PKAWV,
    PROSNKONS,
    SketchedKONS,
)

SAMPLERS = [
    {"ridge": ridge, **more}
    for ridge in (1e-300, 1e-12, 1.0, 1e12, 1e300)
    for more in ({}, {"max_dictionary": 1}, {"beta": 1e6, "epsilon": 1.0})
]
LEARNERS = [
    *((learner, {"alpha": 1e-6}) for learner in (PROSNKONS, CONKONS, KONS, KAWV, PKAWV, NONSALD)),
    (BKONS, {"alpha": 1e-6, "max_dictionary": 1}),
    (SketchedKONS, {"alpha": 1e-6, "sampling_floor": 0.3}),
    (NORMA, {"step_size": 0.1, "budget": 1}),
    (NOGD, {"step_size": 0.1, "budget": 30, "rank": 50}),
    *((KORS, given) for given in SAMPLERS),
]
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
    "sparse": scipy.sparse.random(90, 5_000, 1e-3, "csr", random_state=0),
}


@pytest.mark.filterwarnings("ignore:double precision")
@pytest.mark.parametrize("rows", ROWS)
def test_numbers__are_numbers_and_probabilities_or_a_divergence_is_reported(rows):
    X = ROWS[rows]
    for kernel, (learner, given) in product(KERNELS, LEARNERS):
        model, case = learner(**given, **kernel), (learner, given, kernel)
        try:
            table = model.record(X, np.linspace(-1.0, 1.0, X.shape[0]))
        except FloatingPointError:  # NOGD does not truncate predictions
            assert learner is NOGD or rows == "overflowing", case
            continue
        assert rows != "overflowing" or kernel["kernel"] != "polynomial", case
        assert np.isfinite(table.column("prediction").to_numpy()).all(), case
        assert np.isfinite(model.predict(X)).all(), case
        assert np.isfinite(getattr(model, "weights_", 0.0)).all(), case
        if "inclusion_probability" in table.column_names:
            p = table.column("inclusion_probability").to_numpy()
            assert ((p >= 0.0) & (p <= 1.0)).all(), case


@pytest.mark.parametrize(
    ("learner", "given"),
    [(KORS, {"ridge": 0.01}), (SketchedKONS, {"sampling_floor": 0.5}), (PKAWV, {"ridge": 0.01})],
    ids=str,
)
def test_dictionary_that_has_grown__in_one_call_in_many_and_saved_gives_the_same_bits(
    learner, given, tmp_path
):
    X = scipy.sparse.random(400, 10_000, 3e-3, "csr", random_state=1)
    y = np.sin(np.arange(400.0))
    once, whole = (learner(bandwidth=4.0, **given) for _ in range(2))
    expected = once.progressive(X, y)[238:].tobytes()
    for t in range(0, 238, 7):
        whole.progressive(X[t : t + 7], y[t : t + 7])
    assert len(whole.dictionary_) > 112  # the room for points has grown twice
    whole.save(tmp_path / "whole.koco")
    again = koco_stream.load(tmp_path / "whole.koco")
    for name, model in {"whole": whole, "again": again}.items():
        assert model.progressive(X[238:], y[238:]).tobytes() == expected, name
        model.save(tmp_path / f"{name}.koco")
    assert (tmp_path / "whole.koco").read_bytes() == (tmp_path / "again.koco").read_bytes()
