"""KAWV and PKAWV against their paper, literally: predictions, functions, dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koco_stream import KORS, PKAWV
from tests.helpers.kernel_streams import (
    KERNEL,
    POINTS,
    SAMPLING,
    STREAMS,
    any_stream,
    assert_agree,
    assert_recorded,
    each,
    sampling,
)
from tests.oracles.kernel_learners import Kors, features
from tests.oracles.ridge import Kawv, Pkawv

# labels beyond a small clip are among the cases
pytestmark = pytest.mark.filterwarnings("ignore:a label")
ridges = st.sampled_from([0.1, 1.0, 5.0])


@each(STREAMS | KERNEL | {"truncated", "φ = 0", "a repeated row"})
@given(any_stream, ridges)
def test_kawv__is_the_solution_of_the_whole_system(stream, alpha):
    reference = Kawv(alpha=alpha, clip=stream.clip)
    options = {"alpha": alpha, **stream.common, **stream.kernel}
    assert_agree("KAWV", stream, options, reference, stream.phi())


@each(
    STREAMS
    | KERNEL
    | POINTS
    | SAMPLING
    | {"truncated", "φ = 0", "past rows gain a coordinate", "a row to predict would join"}
)
@given(any_stream, ridges, sampling, st.sampled_from([0.05, 1.0]))
def test_pkawv__is_the_minimiser_in_the_span_of_kors_s_dictionary(stream, alpha, sampling, ridge):
    Phi = stream.phi()
    kors = Kors(Phi.shape[1], Phi.dtype, ridge=ridge, **sampling)
    reference = Pkawv(kors=kors, alpha=alpha, clip=stream.clip)
    options = {"alpha": alpha, "ridge": ridge, **sampling, **stream.common, **stream.kernel}
    model = assert_agree("PKAWV", stream, options, reference, Phi)
    np.testing.assert_array_equal(model.dictionary_, reference.points)
    columns = {"inclusion_probability": reference.probabilities, "included": reference.included}
    assert_recorded("PKAWV", stream, options, **columns)
    same = KORS(ridge, **sampling, **stream.kernel, fit_intercept=options["fit_intercept"])
    same.fit(stream.given[: len(stream.y)])
    np.testing.assert_array_equal(model.dictionary_, same.dictionary_)
    embedded = model.features(stream.given)
    taken = reference.kors.taken
    projected = reference.embedded(Phi, taken) if taken else Phi[:, :0]
    np.testing.assert_allclose(
        embedded @ embedded.T, projected @ projected.T, rtol=0, atol=1e-9 * (Phi**2).sum(1).max()
    )


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
        Phi = features("gaussian", X.astype(np.longdouble), 0.7, 1)
        given = {"ridge": 0.1, "beta": 3.0, "epsilon": 0.5, "estimate": "icml", "seed": seed}
        kors = Kors(Phi.shape[1], Phi.dtype, **given)
        reference = Pkawv(kors=kors, alpha=np.longdouble(alpha), clip=10.0)
        expected = np.array([reference.learn(*one) for one in zip(Phi, y, strict=True)], float)
        model = PKAWV(alpha, **given, bandwidth=0.7, clip=10.0)
        np.testing.assert_allclose(model.progressive(X, y), expected, rtol=0, atol=10 * small)
        assert model.dictionary_.tolist() == reference.points
        assert len(reference.points) > 40
