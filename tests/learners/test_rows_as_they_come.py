"""A new learner looks at rows when it comes to them. Whatever is wrong, and in whichever row: the
results are those of rows that were looked at before, and a learner that is refused rows is as new.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from koco_stream import OGD, PROSNKONS, AdaGrad, OjaSON, WrongInput
from koco_stream.learners import base
from koco_stream.learners.saved import state_arrays
from koco_stream.streams.inputs import as_rows, unchecked_rows
from koco_stream.streams.rows import ROWS_AT_ONCE, canonical

N, D = 2 * ROWS_AT_ONCE + 40, 8
ROWS = (0, 1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 7, N - 1)
LEARNERS = {
    "OGD": lambda: OGD(step_size=0.1),
    "AdaGrad": lambda: AdaGrad(step_size=0.1),
    "OjaSON": lambda: OjaSON(3, alpha=1.0),
    "PROSNKONS": lambda: PROSNKONS(bandwidth=2.0),
}
every_learner = pytest.mark.parametrize("name", LEARNERS)


def plain(seed=0, n=N):
    draw = np.random.default_rng(seed)
    X = np.where(draw.random((n, D)) < 0.6, draw.standard_normal((n, D)), 0.0)
    X[:, 3] = 1.0
    return X, np.sign(draw.standard_normal(n))


def passes(monkeypatch):
    """A list that gets an entry for each pass of checks over all rows."""
    seen = []
    monkeypatch.setattr(base, "as_rows", lambda *given: seen.append(1) or as_rows(*given))
    return seen


@every_learner
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_canonical_rows_are_looked_at_once(name, kind, monkeypatch):
    X, y = plain()
    X = X.astype(kind)
    expected = LEARNERS[name]().partial_fit(X[:5], y[:5]).progressive(X[5:], y[5:])
    seen = passes(monkeypatch)
    for matrix in (sparse.csr_matrix(X), sparse.csr_array(X)):
        model = LEARNERS[name]()
        assert model.progressive(matrix, y)[5:].tobytes() == expected.tobytes()
        assert model.rounds_ == N
        assert not seen
    full = np.where(X == 0.0, kind(0.5), X)
    whole = LEARNERS[name]().fit(sparse.csr_matrix(full), y)
    seen.clear()
    model = LEARNERS[name]()
    model.progressive(full, y)
    assert not seen
    assert all(
        a.tobytes() == b.tobytes()
        for a, b in zip(
            state_arrays(model._state).values(), state_arrays(whole._state).values(), strict=True
        )
    )
    assert model.predict(full).tobytes() == whole.predict(sparse.csr_matrix(full)).tobytes()


@every_learner
def test_a_learner_that_has_learnt_looks_first(name, monkeypatch):
    X, y = plain()
    model = LEARNERS[name]().partial_fit(sparse.csr_matrix(X), y)
    before = {name: a.copy() for name, a in state_arrays(model._state).items()}
    seen = passes(monkeypatch)
    wrong = sparse.csr_matrix(X)
    wrong.data[-1] = np.nan
    with pytest.raises(WrongInput, match=f"row {N - 1} of X holds nan"):
        model.partial_fit(wrong, y)
    assert seen
    after = state_arrays(model._state)
    assert all(after[name].tobytes() == a.tobytes() for name, a in before.items())


def unsorted(csr, t):
    """Row t with its features in another order."""
    these = slice(csr.indptr[t], csr.indptr[t + 1])
    csr.indices[these], csr.data[these] = csr.indices[these][::-1], csr.data[these][::-1]


def with_a_zero(csr, t):
    csr.data[csr.indptr[t]] = 0.0


def with_a_pair(csr, t):
    """Row t with a feature that it has twice."""
    csr.indices[csr.indptr[t] + 1] = csr.indices[csr.indptr[t]]


@every_learner
@pytest.mark.parametrize("spoil", [unsorted, with_a_zero, with_a_pair])
@pytest.mark.parametrize("t", ROWS)
def test_rows_to_convert(name, spoil, t):
    """All that is learnt has the bits of the converted rows, and the matrix does not change."""
    X, y = plain()
    csr = sparse.csr_matrix(X)
    spoil(csr, t)
    csr.has_sorted_indices = csr.has_canonical_format = False
    given = [csr.indptr.copy(), csr.indices.copy(), csr.data.copy()]
    model = LEARNERS[name]()
    found = model.progressive(csr, y)
    other = LEARNERS[name]().partial_fit(X[:0], y[:0])
    assert found.tobytes() == other.progressive(csr.toarray(), y).tobytes()
    assert model.rounds_ == other.rounds_ == N
    assert model.predict(csr).tobytes() == other.predict(csr.toarray()).tobytes()
    assert all(
        (a == b).all() for a, b in zip(given, (csr.indptr, csr.indices, csr.data), strict=True)
    )


def not_a_number(csr, t):
    csr.data[csr.indptr[t]] = np.nan


def infinite(csr, t):
    csr.data[csr.indptr[t + 1] - 1] = -np.inf


def beyond(csr, t):
    csr.indices[csr.indptr[t + 1] - 1] = D


def negative(csr, t):
    csr.indices[csr.indptr[t]] = -1


@every_learner
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("spoil", [not_a_number, infinite, beyond, negative])
@pytest.mark.parametrize("t", ROWS)
def test_rows_to_refuse(name, started, spoil, t):
    X, y = plain()
    right, wrong = sparse.csr_matrix(X), sparse.csr_matrix(X)
    spoil(wrong, t)
    model = LEARNERS[name]()
    if started:
        model.partial_fit(right[:0], y[:0])
    said = "X names features" if spoil in (beyond, negative) else f"row {t} of X holds"
    with pytest.raises(WrongInput, match=said):
        model.progressive(wrong, y)
    assert hasattr(model, "n_features_in_") == started
    assert vars(model).get("rounds_", 0) == 0
    expected = LEARNERS[name]().progressive(right, y)
    assert model.progressive(right, y).tobytes() == expected.tobytes()
    with pytest.raises(WrongInput, match=said):
        model.predict(wrong)


def test_rows_to_refuse__after_a_row_at_which_the_learner_diverges():
    X, y = plain()
    X = sparse.csr_matrix(1e200 * X)
    model = OGD(step_size=1e200)
    with pytest.raises(FloatingPointError, match="diverged"):
        model.progressive(X, y)
    X.data[-1] = np.nan
    model = OGD(step_size=1e200)
    with pytest.raises(WrongInput, match=f"row {N - 1} of X holds nan"):
        model.progressive(X, y)
    assert not hasattr(model, "rounds_")


def test_rows_to_convert__when_that_fails(monkeypatch):
    """The learner has not learnt the rows before, which would be learnt twice at the next try."""
    X, y = plain()
    csr = sparse.csr_matrix(X)
    unsorted(csr, N - 1)
    model = OGD(step_size=0.1)
    with monkeypatch.context() as patched:
        patched.setattr(base, "as_rows", lambda *given: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            model.progressive(csr, y)
    assert not hasattr(model, "rounds_")
    expected = OGD(step_size=0.1).progressive(X, y)
    assert model.progressive(csr, y).tobytes() == expected.tobytes()


class Own(OGD):
    """Has methods of its own, of which the library knows nothing."""

    registered = classmethod(lambda cls: OGD)

    @staticmethod
    def advance(*given):
        return OGD.advance(*given)

    @staticmethod
    def expect(*given):
        return OGD.expect(*given)

    def begin(self, X, y):
        self.began = True
        return super().begin(X, y)


def test_learners_with_methods_of_their_own():
    X, y = plain()
    model = Own(step_size=0.1)
    other = OGD(step_size=0.1)
    csr = sparse.csr_matrix(X)
    assert model.progressive(csr, y).tobytes() == other.progressive(csr, y).tobytes()
    assert model.began
    assert model.predict(csr).tobytes() == other.predict(csr).tobytes()


def test_what_is_no_matrix():
    with pytest.raises(WrongInput, match="X must have two dimensions"):
        OGD(step_size=0.1).progressive(aslinearoperator(np.eye(3)), np.ones(3))


@pytest.mark.parametrize(
    "indptr",
    [
        np.array([0, 3, 2, 3, 6], np.uint32),
        np.array([0, 4000, 2, 3, 6], np.uint32),
        np.array([0, 2**31 - 1, -(2**31), -1, 6], np.int32),
    ],
)
def test_indptr_that_decreases(indptr):
    csr = sparse.csr_matrix(np.eye(4))
    csr.indptr, csr.indices, csr.data = indptr, np.arange(6, dtype=np.int32) % 4, np.ones(6)
    assert unchecked_rows(csr) is None
    with pytest.raises(WrongInput, match="does not increase"):
        OGD(step_size=0.1).progressive(csr, np.ones(4))


@pytest.mark.parametrize("name", ["indptr", "indices", "data"])
def test_arrays_that_do_not_fit(name):
    """Nothing beyond an array is read, whatever the arrays are."""
    X, y = plain()
    whole = getattr(sparse.csr_matrix(X), name)
    for changed in (whole[:-1], whole[::-1].copy()) if name == "indptr" else (whole[:-1],):
        broken = sparse.csr_matrix(X)
        setattr(broken, name, changed)
        assert unchecked_rows(broken) is None
        with pytest.raises(WrongInput):
            OGD(step_size=0.1).progressive(broken, y)


def test_arrays_with_room_behind_the_last_row():
    X, y = plain()
    csr = sparse.csr_matrix(X)
    csr.indices, csr.data = np.append(csr.indices, np.int32(-7)), np.append(csr.data, np.nan)
    expected = OGD(step_size=0.1).progressive(X, y)
    assert OGD(step_size=0.1).progressive(csr, y).tobytes() == expected.tobytes()


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    wrong=st.lists(
        st.tuples(
            st.integers(0, 240),
            st.sampled_from([0.0, np.nan, np.inf]) | st.sampled_from([-61, -1, 0, 1, 60]),
        ),
        max_size=2,
    ),
    seed=st.integers(0, 10**6),
)
def test_canonical(sizes, wrong, seed):
    """Rows are taken as they are exactly if `as_rows` does: values and feature numbers of whole
    rows, and some that are wrong or moved, at the ends of rows and of the matrix too.
    """
    draw, d = np.random.default_rng(seed), 60
    numbers = [np.sort(draw.choice(d, size, replace=False)) for size in sizes]
    indices = np.concatenate(numbers).astype(np.int32)
    values = draw.choice([1.0, -2.5, 5e-324], indices.size)
    for at, what in wrong:
        array = values if isinstance(what, float) else indices
        array[at:][:1] = what if isinstance(what, float) else indices[at:][:1] + what
    csr = sparse.csr_matrix((len(sizes), d))
    csr.indptr = np.cumsum([0, *sizes]).astype(np.int32)
    csr.indices, csr.data = indices, values
    rows = unchecked_rows(csr)
    assert rows is not None
    taken = canonical(rows, 0, len(sizes))
    assert taken == all(canonical(rows, t, t + 1) for t in range(len(sizes)))
    try:
        checked = as_rows(csr)
    except WrongInput:
        assert not taken
        return
    same = checked.values.tobytes() == csr.data.tobytes() and (
        checked.indices.tobytes() == indices.tobytes()
    )
    assert taken == same


def test_unchecked_rows__only_of_matrices_that_can_be_read_as_they_are():
    X, _ = plain()
    csr = sparse.csr_matrix(X)
    assert unchecked_rows(X) is not None
    assert unchecked_rows(csr) is not None
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    others = [
        X.tolist(),
        X[:, ::2],
        X.astype(np.int64),
        X[0],
        X[:, :0],
        np.ma.masked_equal(X, 0.0),
        np.asfortranarray(X),
        csr.tocsc(),
        csr.astype(np.int64),
        wide,
    ]
    assert [unchecked_rows(other) for other in others] == [None] * len(others)
