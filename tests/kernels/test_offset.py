"""Gaussian kernel values do not depend on where the origin is, in whichever of three ways they are
computed: from a dictionary, in tiles, or from the past rows of PKAWV.
"""

import numpy as np
import pytest

import koco_stream

LEARNERS = {
    "KONS": {"curvature": 0.3},
    "SketchedKONS": {"curvature": 0.3, "sampling_floor": 0.3},
    **{name: {"ridge": 0.1} for name in ("PROSNKONS", "CONKONS", "PKAWV", "KORS")},
    "BKONS": {"max_dictionary": 9},
    "NONSALD": {},
    "KAWV": {},
    "NORMA": {"budget": 12, "step_size": 0.3},
    "NOGD": {"budget": 12, "rank": 5, "step_size": 0.3},
}


def table(form, far, n=70):
    """Rows whose offset changes no digit of their differences; some are nearly or quite equal."""
    draw = np.random.default_rng(5)
    X = draw.integers(-1024, 1025, (n, 6)) / 1024.0
    X[40:] = X[draw.integers(0, 40, n - 40)]
    X[55:, 0] += 2.0**-20
    return X + (far * (draw.random(6) < 0.7) if form == "mixed" else far)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("form", ["dense", "mixed"])
def test_predictions__do_not_see_an_offset(name, form):
    y = np.sin(np.arange(70.0))
    near, far = (getattr(koco_stream, name)(bandwidth=0.7, **LEARNERS[name]) for _ in range(2))
    tables = [model.record(table(form, at), y) for model, at in ((near, 0.0), (far, 1e6))]
    for column in {"prediction", "inclusion_probability"} & set(tables[0].column_names):
        expected, found = (one.column(column).to_numpy() for one in tables)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert not hasattr(far, "dictionary_") or (far.dictionary_ == near.dictionary_).all()
