"""`step_schedule` of OGD and NORMA: what counts as a round, and what a saved learner keeps."""

import numpy as np
import pytest

import koco_stream
from koco_stream import NORMA, OGD, WrongInput
from koco_stream.io.array_file import write_arrays
from koco_stream.io.paths import store_path
from koco_stream.learners.saved import arrays_of, description
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


@pytest.mark.parametrize(("saved", "said"), [("constant", "sqrt"), ("sqrt", "constant")])
def test_file_of_another_schedule__is_refused_if_it_has_no_room_for_the_count(
    saved, said, tmp_path
):
    """The arrays of a kernel learner may be larger than those of a new one, but not smaller."""
    model = MAKERS["NORMA"](step_schedule=saved).partial_fit(X, Y)
    header = description(model)
    header["params"]["step_schedule"] = said
    write_arrays(store_path(tmp_path / "a.koco"), header, arrays_of(model))
    if saved == "constant":
        with pytest.raises(WrongInput, match=r"a\.koco .* steps does not fit this version"):
            koco_stream.load(tmp_path / "a.koco")
    else:
        assert np.isfinite(koco_stream.load(tmp_path / "a.koco").progressive(X, Y)).all()
