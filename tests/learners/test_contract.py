"""What every learner promises, crossed with every learner of the registry."""

from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import koco_stream
from koco_stream import KORS
from koco_stream.learners import LEARNERS, contract
from koco_stream.learners.base import Learner
from koco_stream.learners.record import COUNTED
from koco_stream.learners.saved import state_arrays
from tests.helpers.examples import EXAMPLES, make
from tests.helpers.linear_streams import stream
from tests.helpers.refusal import refusal

X, Y = stream(0, n=120, d=12, density=0.4)
X[5] = 0.0


def test_registry__has_every_learner_with_a_constructor():
    folder = Path(koco_stream.__file__).parent / "learners"
    files = [path for room in ("linear", "kernel") for path in (folder / room).glob("[!_]*.py")]
    files += [folder / "constant.py", folder / "mixture.py"]
    names = [".".join(f.relative_to(folder).with_suffix("").parts) for f in files]
    modules = [import_module(f"koco_stream.learners.{name}") for name in names]
    there = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Learner) and "__init__" in vars(value)
    }
    assert there - {Learner} == set(LEARNERS.values())
    assert all(getattr(koco_stream, name) is learner for name, learner in LEARNERS.items())


every_learner = pytest.mark.parametrize("name", sorted(LEARNERS))
# one of each kind of scan: row by row, over kernel values that are shared, with a dictionary
OF_EACH_SCAN = ["FDSON", "KONS", "CONKONS"]
of_each_scan = pytest.mark.parametrize("name", OF_EACH_SCAN)


@pytest.mark.filterwarnings("ignore:double precision")  # of rows that are too large
@every_learner
def test_contract__is_kept(name, monkeypatch):
    """What `koco learners check` asks of any learner, of ours too. Single precision, for which a
    learner is compiled anew, is asked of one of each kind of scan.
    """
    if name not in OF_EACH_SCAN:
        rest = tuple(check for check in contract.CHECKS if check is not contract.single_precision)
        monkeypatch.setattr(contract, "CHECKS", rest)
    outcomes = contract.check_contract(LEARNERS[name], EXAMPLES[name])
    assert [outcome for outcome in outcomes if outcome.found] == []


@of_each_scan
def test_single_precision__has_the_bits_of_the_same_numbers(name):
    narrow = X.astype(np.float32)
    found, expected = (make(name).progressive(rows, Y) for rows in (narrow, narrow.astype(float)))
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "name", [name for name in LEARNERS if ".linear." in LEARNERS[name].__module__]
)
def test_empty_row__changes_nothing(name):
    """To a Gaussian or polynomial kernel the origin is a point like any other."""
    whole, model, pieces = make(name).progressive(X, Y), make(name), []
    for a, b in ((0, 40), (40, 120)):
        pieces.append(model.progressive(X[a:b], Y[a:b]))
        assert model.progressive(np.zeros((1, X.shape[1])), [0.7]).tolist() == [0.0]
    assert np.concatenate(pieces).tobytes() == whole.tobytes()


def test_saved__cut_or_altered_file_is_refused(tmp_path):
    path = tmp_path / "m.koco"
    make("OGD").partial_fit(X, Y).save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        altered = whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
        for content in (whole[:at], altered):
            path.write_bytes(content)
            refusal(r"m\.koco cannot be read", koco_stream.load, path)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (np.vstack([X[:7], np.where(np.arange(12) == 3, np.nan, X[7])]), Y[:8], "row 7"),
        (np.vstack([X[:7], np.where(np.arange(12) == 3, np.inf, X[7])]), Y[:8], "row 7"),
        (X[:3], [0.0, 0.0, np.nan], r"y\[2\]"),
        (X[:3], [0.0, 0.0, np.inf], r"y\[2\]"),
        (X[:3, :5], Y[:3], "features"),
    ],
    ids=["NaN", "infinity", "label NaN", "label infinity", "fewer features"],
)
def test_bad_value__is_refused_with_its_place_and_nothing_is_learnt(rows, labels, message):
    model = make("OGD").partial_fit(X, Y)
    before = [a.tobytes() for a in state_arrays(model._state).values()]
    refusal(message, model.progressive, rows, labels)
    assert [a.tobytes() for a in state_arrays(model._state).values()] == before


@pytest.mark.parametrize(("name", "matters"), [("OGD", True), ("Constant", False)])
def test_label_beyond_clip__warns_once_where_it_matters(name, matters):
    model = make(name)
    with pytest.warns(UserWarning, match="beyond clip") if matters else nullcontext():
        model.partial_fit(X, 3 * Y)
    model.partial_fit(X, 3 * Y)  # a warning would be an error here


@pytest.mark.parametrize(
    ("name", "given", "warned"),
    [
        ("OjaSON", {"alpha": 0.1}, True),
        ("FDSON", {"alpha": 0.1}, True),
        ("RPSON", {"alpha": 0.1}, True),
        ("OjaSON", {"alpha": 0.5}, False),
        ("OjaSON", {"alpha": 0.1, "diagonal": True}, False),  # which scales the features
        ("ONS", {"alpha": 0.1}, False),  # every direction is in its matrix
        ("KONS", {"alpha": 0.1, "kernel": "linear"}, False),
    ],
)
def test_rows_long_beside_alpha__warn_at_the_first_block_with_the_remedy(name, given, warned):
    rows = X[:30] * (30.0 / (X[:30] ** 2).sum(axis=1).mean()) ** 0.5
    model = LEARNERS[name](**given)
    said = pytest.warns(UserWarning, match=r"square norm of 30, .* scale the features .* alpha")
    with said if warned else nullcontext():
        model.partial_fit(rows, Y[:30])
    model.partial_fit(2.0 * rows, Y[:30])  # a warning would be an error here


@of_each_scan
def test_record__has_rounds_predictions_and_losses(name):
    table = make(name).record(X, Y)
    predictions = make(name).progressive(X, Y)
    assert table.column("t").to_pylist() == list(range(1, len(X) + 1))
    assert table.column("prediction").to_numpy().tobytes() == predictions.tobytes()
    np.testing.assert_allclose(table.column("loss").to_numpy(), (predictions - Y) ** 2)
    state = make(name).partial_fit(X, Y)._state
    counts = getattr(state, "diagnostics", state)
    for counted in set(table.column_names) & set(COUNTED):
        assert table.column(counted)[-1].as_py() == int(getattr(counts, counted))


def test_record__counts_what_is_rare():
    assert {"folds", "dense_rounds"} <= set(make("OjaSON").record(X, Y).column_names)
    assert make("FDSON").record(X, Y).column("shrinks")[-1].as_py() > 10


def test_refused_first_call__leaves_the_model_unfitted():
    model = make("OGD", loss="logistic")
    refusal("labels -1 and", model.partial_fit, np.ones((2, 4)), [0.0, 1.0])
    assert not model.__sklearn_is_fitted__()
    refusal("not fitted", getattr, model, "n_features_in_", by=AttributeError)
    model.partial_fit(np.ones((2, 5)), [-1.0, 1.0])


def test_seed__is_exact_however_large():
    most = 2**63 - 1
    assert KORS(bandwidth=0.3, seed=most).partial_fit(np.eye(3)).seed == most
    X = np.random.default_rng(0).standard_normal((60, 2))
    one, other = (KORS(bandwidth=0.3, seed=2**53 + more).partial_fit(X) for more in (0, 1))
    assert tuple(one.dictionary_) != tuple(other.dictionary_)
