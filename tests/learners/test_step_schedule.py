"""`step_schedule` of OGD and NORMA: what counts as a round, and what a saved learner keeps."""

import numpy as np
import pytest

import koco_stream
from koco_stream import NORMA, OGD, WrongInput
from koco_stream.learners.saved import arrays_of, description, write_model
from tests.helpers.linear_streams import stream

X, Y = stream(0, n=120, d=12, density=0.2)
FULL = X.any(1)
assert 3 < (~FULL).sum() < 60

MAKERS = {
    "OGD": lambda **more: OGD(0.3, **more),
    "NORMA": lambda **more: NORMA(0.2, kernel="linear", budget=20, **more),
}
changing = pytest.mark.parametrize("schedule", ["sqrt", "linear"])
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every
@changing
def test_empty_rows__are_not_counted(make, schedule):
    some, whole = make(step_schedule=schedule), make(step_schedule=schedule)
    mine, expected = whole.progressive(X, Y), some.progressive(X[FULL], Y[FULL])
    assert not mine[~FULL].any()
    # sums over the points of a kernel learner are in another order
    np.testing.assert_allclose(mine[FULL], expected, rtol=0, atol=1e-12)


@every
@changing
def test_first_step__is_that_of_the_constant_step_and_later_ones_are_smaller(make, schedule):
    one, other = make(), make(step_schedule=schedule)
    first = np.flatnonzero(FULL)[0] + 1
    assert (
        other.progressive(X[:first], Y[:first]).tolist()
        == one.progressive(X[:first], Y[:first]).tolist()
    )
    np.testing.assert_array_equal(other.predict(X), one.predict(X))
    assert (other.progressive(X[first:], Y[first:]) != one.progressive(X[first:], Y[first:])).any()


@every
@changing
@pytest.mark.parametrize("cut", [0, 1, 57])
def test_saved__goes_on_with_the_same_bits(make, schedule, cut, tmp_path):
    whole = make(step_schedule=schedule).progressive(X, Y)
    model = make(step_schedule=schedule)
    before = model.progressive(X[:cut], Y[:cut])
    model.save(tmp_path / "a.koco")
    after = koco_stream.load(tmp_path / "a.koco").progressive(X[cut:], Y[cut:])
    assert np.concatenate([before, after]).tobytes() == whole.tobytes()


@every
@changing
def test_constant_step__has_the_identity_and_the_arrays_of_before(make, schedule):
    constant, other = make(), make(step_schedule=schedule)
    learner = type(constant)
    given = {q.name: getattr(constant, q.name) for q in learner.parameters}
    assert "step_schedule" not in learner.identifying(learner.complete(given))
    changed = learner.complete(given | {"step_schedule": schedule})
    assert learner.identifying(changed)["step_schedule"] == schedule
    sizes = [
        sum(array.size for array in arrays_of(one.partial_fit(X, Y)).values())
        for one in (constant, other)
    ]
    assert sizes[1] == sizes[0] + 1


def relabelled(model, schedule, path):
    """The model's file, as if it had been saved with another schedule."""
    header = description(model)
    header["params"]["step_schedule"] = schedule
    write_model(path, header, arrays_of(model))
    return path


@pytest.mark.parametrize(("saved", "said"), [("constant", "sqrt"), ("sqrt", "constant")])
def test_file_of_another_schedule__is_refused_or_has_no_count(saved, said, tmp_path):
    model = MAKERS["OGD"](step_schedule=saved).partial_fit(X, Y)
    with pytest.raises(WrongInput, match="w does not fit this version of OGD"):
        koco_stream.load(relabelled(model, said, tmp_path / "a.koco"))
    # the arrays of a kernel learner may be larger than those of a new one, but not smaller: where
    # there is no count, none could be written
    model = MAKERS["NORMA"](step_schedule=saved).partial_fit(X, Y)
    file = relabelled(model, said, tmp_path / "a.koco")
    if saved == "constant":
        with pytest.raises(WrongInput, match="steps does not fit this version of NORMA"):
            koco_stream.load(file)
    else:
        assert np.isfinite(koco_stream.load(file).progressive(X, Y)).all()


def test_coef__has_the_weights_only():
    model = OGD(0.3, step_schedule="sqrt", fit_intercept=True).partial_fit(X, Y)
    assert model.coef_.shape == (13,)
    products = X @ model.coef_[:12] + model.coef_[12]
    np.testing.assert_allclose(model.predict(X), np.clip(products, -1, 1), rtol=0, atol=1e-12)
