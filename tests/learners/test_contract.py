"""What every learner promises, crossed with every learner. A learner that is not in LEARNERS below
fails the first test.
"""

import inspect
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import koco_stream
from koco_stream import WrongInput
from koco_stream.learners import LEARNERS
from koco_stream.learners.record import COUNTED
from koco_stream.learners.saved import state_arrays
from koco_stream.learners.shared_kernel_scan import SharedKernelLearner
from tests.helpers.examples import EXAMPLES, make

NOT_LEARNERS = {"__init__", "base", "newton_round", "newton_step"}


def stream(seed=0, n=120, d=12, density=0.4):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d)) * (draw.random((n, d)) < density)
    X[5] = 0.0
    y = np.clip(X @ draw.standard_normal(d), -1, 1)
    return X, y


def test_registry__is_complete():
    folder = Path(koco_stream.__file__).parent / "learners"
    files = {path.stem for room in ("linear", "kernel") for path in (folder / room).glob("*.py")}
    in_files = {learner.__module__.rsplit(".", 1)[1] for learner in LEARNERS.values()}
    assert in_files == files - NOT_LEARNERS
    assert all(getattr(koco_stream, name) is learner for name, learner in LEARNERS.items())


every_learner = pytest.mark.parametrize("name", sorted(LEARNERS))


@every_learner
def test_constructor__has_the_learners_parameters_and_seed(name):
    signature = inspect.signature(LEARNERS[name].__init__).parameters
    assert set(signature) - {"self", "seed"} == {q.name for q in LEARNERS[name].parameters}


@every_learner
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 120), max_size=5), intercept=st.booleans())
def test_progressive__many_rows_are_the_loop_of_single_rows(name, cuts, intercept):
    X, y = stream()
    whole = make(name, fit_intercept=intercept).progressive(X, y)
    model = make(name, fit_intercept=intercept)
    ends = [0, *sorted(cuts), len(X)]
    pieces = [model.progressive(X[a:b], y[a:b]) for a, b in pairwise(ends)]
    assert np.concatenate(pieces).tobytes() == whole.tobytes()


@every_learner
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_progressive__same_bits_from_every_form_of_input(name, dtype):
    X, y = stream()
    X = X.astype(dtype)
    csr = scipy.sparse.csr_matrix(X)
    halves, twice = np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2)
    doubled = scipy.sparse.csr_matrix((halves, twice, 2 * csr.indptr), csr.shape)
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(csr.indptr)])
    unsorted = scipy.sparse.csr_matrix((csr.data[order], csr.indices[order], csr.indptr), csr.shape)
    n, d = X.shape
    every = np.tile(np.arange(d), n), np.arange(0, X.size + 1, d)
    stored_zeros = scipy.sparse.csr_matrix((X.ravel(), *every), X.shape)
    forms = {
        "fortran": np.asfortranarray(X),
        "csr": csr,
        "csc": csr.tocsc(),
        "duplicates": doubled,
        "unsorted": unsorted,
        "stored zeros": stored_zeros,
        "csr_array": scipy.sparse.csr_array(csr),
        "coo": sparse.COO.from_numpy(X),
        "gcxs": sparse.GCXS.from_numpy(X),
    }
    expected = make(name).progressive(X, y)
    for form, matrix in forms.items():
        assert make(name).progressive(matrix, y).tobytes() == expected.tobytes(), form


@every_learner
def test_prediction__does_not_look_ahead(name):
    X, y = stream()
    changed, labels = X.copy(), y.copy()
    changed[61:], labels[60:] = 2.0, -0.5
    a, b = make(name).progressive(X, y), make(name).progressive(changed, labels)
    assert a[:61].tobytes() == b[:61].tobytes()


@every_learner
def test_empty_row__changes_nothing(name):
    # With a Gaussian or polynomial kernel the origin is a point like any other; with the linear
    # kernel it is no row at all.
    parameters = {q.name for q in LEARNERS[name].parameters}
    if "bandwidth" in parameters and "kernel" not in parameters:
        pytest.skip("its kernel is always a Gaussian")
    kernel = {"kernel": "linear"} if "kernel" in parameters else {}
    X, y = stream()
    model = make(name, **kernel)
    whole = make(name, **kernel).progressive(X, y)
    if kernel and LEARNERS[name].stochastic(LEARNERS[name].complete(EXAMPLES[name])):
        pytest.skip("the empty row has a coin of its own, so later coins are others")
    pieces = []
    for a, b in ((0, 40), (40, 120)):
        pieces.append(model.progressive(X[a:b], y[a:b]))
        assert model.progressive(np.zeros((1, X.shape[1])), [0.7]).tolist() == [0.0]
    # Sums over even and odd rows: the empty row moves those after it from one to the other.
    if issubclass(LEARNERS[name], SharedKernelLearner):
        np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-12)
    else:
        assert np.concatenate(pieces).tobytes() == whole.tobytes()


@every_learner
def test_input__is_not_changed(name):
    X, y = stream()
    csr = scipy.sparse.csr_matrix(X)
    copies = X.copy(), y.copy(), csr.copy()
    make(name).progressive(X, y)
    make(name).progressive(csr, y)
    assert (X == copies[0]).all()
    assert (y == copies[1]).all()
    assert (csr != copies[2]).nnz == 0


@every_learner
def test_state__does_not_grow_unless_it_holds_a_dictionary(name):
    if LEARNERS[name].grows:
        pytest.skip("it grows with its dictionary")
    X, y = stream()
    model = make(name).partial_fit(X, y)
    before = [(a.shape, a.dtype) for a in state_arrays(model._state).values()]
    for _ in range(3):
        model.partial_fit(X, y)
    assert [(a.shape, a.dtype) for a in state_arrays(model._state).values()] == before


@every_learner
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_saved__cut_or_altered_file_is_refused(name, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.koco"
    make(name).partial_fit(*stream()).save(path)
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:place])
    with pytest.raises(WrongInput, match=r"cut short|not a koco-stream"):
        koco_stream.load(path)
    path.write_bytes(
        whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    )
    with pytest.raises(WrongInput, match=r"altered|not a koco-stream"):
        koco_stream.load(path)


def test_saved__another_learner_s_file_is_refused(tmp_path):
    make("OGD").partial_fit(*stream()).save(tmp_path / "m.koco")
    with pytest.raises(WrongInput, match="holds OGD, not OjaSON"):
        koco_stream.OjaSON.load(tmp_path / "m.koco")
    assert isinstance(koco_stream.load(tmp_path / "m.koco"), koco_stream.OGD)


def test_saved__newer_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("koco_stream.learners.saved.FORMAT", 2)
    make("OGD").partial_fit(*stream()).save(tmp_path / "m.koco")
    monkeypatch.setattr("koco_stream.learners.saved.FORMAT", 1)
    with pytest.raises(WrongInput, match=r"format 2.*upgrade"):
        koco_stream.load(tmp_path / "m.koco")


@every_learner
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_value__is_refused_with_its_row_and_nothing_is_learnt(name, bad):
    X, y = stream()
    model = make(name).partial_fit(X, y)
    before = [a.tobytes() for a in state_arrays(model._state).values()]
    X[7, 3] = bad
    with pytest.raises(WrongInput, match="row 7"):
        model.progressive(X, y)
    with pytest.raises(WrongInput, match=r"y\[2\]"):
        model.progressive(np.ones((3, 12)), [0.0, 0.0, bad])
    with pytest.raises(WrongInput, match="features"):
        model.progressive(np.ones((3, 5)), [0.0, 0.0, 0.0])
    assert [a.tobytes() for a in state_arrays(model._state).values()] == before


@every_learner
def test_label_beyond_clip__warns_once(name):
    X, y = stream()
    model = make(name)
    if "clip" in LEARNERS[name].irrelevant(LEARNERS[name].complete(EXAMPLES[name])):
        model.partial_fit(X, 3 * y)  # nothing is clipped: no warning, which would be an error here
        return
    with pytest.warns(UserWarning, match="beyond clip"):
        model.partial_fit(X, 3 * y)
    model.partial_fit(X, 3 * y)


@every_learner
def test_record__has_rounds_predictions_and_losses(name):
    X, y = stream()
    table = make(name).record(X, y)
    predictions = make(name).progressive(X, y)
    assert table.column("t").to_pylist() == list(range(1, len(X) + 1))
    assert table.column("prediction").to_numpy().tobytes() == predictions.tobytes()
    np.testing.assert_allclose(table.column("loss").to_numpy(), (predictions - y) ** 2)
    state = make(name).partial_fit(X, y)._state
    for counted in set(table.column_names) & set(COUNTED):
        assert table.column(counted)[-1].as_py() == int(getattr(state, counted))


def test_record__counts_what_is_rare():
    X, y = stream()
    assert {"folds", "dense_rounds"} <= set(make("OjaSON").record(X, y).column_names)
    assert make("FDSON").record(X, y).column("shrinks")[-1].as_py() > 10


def test_parameter_out_of_range__names_it():
    with pytest.raises(WrongInput, match="alpha must be greater than 0, not -1"):
        koco_stream.OjaSON(alpha=-1.0).partial_fit([[1.0]], [1.0])
    with pytest.raises(WrongInput, match="no curvature"):
        koco_stream.OjaSON(loss="hinge").partial_fit([[1.0]], [1.0])
    with pytest.raises(WrongInput, match="did you mean 'alpha'"):
        koco_stream.OjaSON().set_params(alfa=1.0)


@every_learner
def test_parameters_changed_while_learning__are_refused(name):
    X, y = stream()
    model = make(name).partial_fit(X, y)
    model.set_params(fit_intercept=True)
    with pytest.raises(WrongInput, match="fit_intercept changed"):
        model.partial_fit(X, y)
    with pytest.raises(WrongInput, match="fit_intercept changed"):
        model.predict(X)
    model.fit(X, y).partial_fit(X, y)


@every_learner
def test_refused_first_call__leaves_the_model_unfitted(name):
    model = make(
        name, loss="logistic", **({"curvature": 0.1} if hasattr(make(name), "curvature") else {})
    )
    with pytest.raises(WrongInput, match="labels -1 and"):
        model.partial_fit(np.ones((2, 4)), [0.0, 1.0])
    assert not model.__sklearn_is_fitted__()
    with pytest.raises(AttributeError, match="not fitted"):
        _ = model.n_features_in_
    model.partial_fit(np.ones((2, 5)), [-1.0, 1.0])


@pytest.mark.parametrize("seed", [None, 1.7, -1])
def test_seed__is_a_whole_number_from_zero(seed):
    with pytest.raises(WrongInput, match="seed must be"):
        koco_stream.OjaSON(2, seed=seed).fit(np.eye(3), [1.0, 0.0, 1.0])


def test_seed__is_exact_however_large():
    most = 2**63 - 1
    assert koco_stream.KORS(bandwidth=0.3, seed=most).partial_fit(np.eye(3)).seed == most
    X = np.random.default_rng(0).standard_normal((60, 2))
    chosen = {
        tuple(koco_stream.KORS(bandwidth=0.3, seed=seed).partial_fit(X).dictionary_)
        for seed in (2**53, 2**53 + 1)
    }
    assert len(chosen) == 2
    with pytest.raises(WrongInput, match="seed must be"):
        koco_stream.KORS(seed=2**63).partial_fit(X)


def test_features_out_of_range__are_refused():
    import pyarrow as pa

    for number in (50_000_000, -1):
        wrong = scipy.sparse.csr_matrix((1, 3))
        wrong.indptr, wrong.indices, wrong.data = np.array([0, 1]), np.array([number]), np.ones(1)
        with pytest.raises(WrongInput, match="features"):
            koco_stream.OGD().partial_fit(wrong, [1.0])
        table = pa.table({"indices": [[number]], "values": [[1.0]]}).replace_schema_metadata(
            {"n_features": "3"}
        )
        with pytest.raises(WrongInput, match="features"):
            koco_stream.OGD().partial_fit(table, [1.0])
    with pytest.raises(WrongInput, match="row 1 has 2 values and 1 indices"):
        koco_stream.OGD().partial_fit(
            pa.table({"indices": [[0], [1]], "values": [[1.0], [1.0, 2.0]]}), [1.0, 1.0]
        )
    unsorted = pa.table({"indices": [[2, 0, 2]], "values": [[1.0, 5.0, 1.0]]})
    assert (
        koco_stream.OGD().partial_fit(unsorted, [1.0]).coef_
        == koco_stream.OGD().partial_fit([[5.0, 0.0, 2.0]], [1.0]).coef_
    ).all()


def test_diverged__says_the_row_and_refuses_to_go_on():
    model = koco_stream.OGD(1e200, clip=1e300)
    with pytest.raises(FloatingPointError, match="the prediction for row"):
        model.partial_fit(np.full((9, 2), 1e10), np.ones(9))
    with pytest.raises(WrongInput, match="diverged"):
        model.predict(np.ones((1, 2)))
