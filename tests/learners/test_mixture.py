"""Mixture: its predictions beside a literal text, and its loss beside that of the best member."""

import numpy as np
import pytest

import koco_stream
from koco_stream import AdaGrad, Constant, Mixture, OjaSON
from koco_stream.learners.mixing import RATES, mix_rows
from koco_stream.losses import LOSSES
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from tests.helpers.refusal import refusal
from tests.oracles.losses import values

LONG = np.longdouble


def literal(loss, clip, held, labels):
    """Vovk's forecaster in extended precision: its predictions (n,), and the members' losses."""
    rate, losses = LONG(RATES[loss](clip)), np.zeros(len(held), LONG)
    predictions = []
    for z, y in zip(held.T.astype(LONG), labels.astype(LONG), strict=True):
        losses[np.isnan(z)] = np.inf
        z = np.clip(np.nan_to_num(z), -clip, clip)
        weights = np.exp(-rate * (losses - losses.min()))
        weights /= weights.sum()
        if loss == "squared_hinge":
            y_hat = weights @ z
        elif loss == "logistic":
            y_hat = np.log((weights / (1 + np.exp(-z))).sum() / (weights / (1 + np.exp(z))).sum())
        else:  # g of the two extreme labels, for a loss c·(ŷ − y)²
            c = LONG(1.0 if loss == "squared" else 0.5)
            g = [-np.log(weights @ np.exp(-rate * c * (z - end) ** 2)) for end in (-clip, clip)]
            y_hat = (g[0] - g[1]) / (rate * c * 4 * clip)
        losses += values[loss](z, y)
        predictions.append(y_hat)
    return np.array(predictions), losses


def streams(clip):
    """Eight streams of predictions (K, n) and labels in [−C, C]."""
    draw = np.random.default_rng(3)
    n, signs = 400, np.where(draw.random(400) < 0.5, -clip, clip)
    drawn = draw.uniform(-1.5 * clip, 1.5 * clip, (5, n))
    changing = np.array([np.roll(np.repeat([clip, -clip], n // 2), k * 97) for k in range(4)])
    infinite, late = drawn.copy(), drawn.copy()
    infinite[0], infinite[1, 7:], late[0] = np.inf, np.nan, np.nan
    behind = np.stack([-signs, signs, np.where(np.arange(n) < 200, -signs, signs)])
    yield "drawn", drawn, signs
    yield "the best changes", changing, signs
    yield "one is infinite, and one ends", infinite, signs
    yield "one never was", late, -signs
    yield "all are equal", np.tile(drawn[:1], (9, 1)), signs
    yield "one round", drawn[:, :1], signs[:1]
    yield "labels of 0", drawn, np.zeros(n)
    yield "always wrong, always right", behind, signs


@pytest.mark.parametrize("clip", [0.5, 1.0, 20.0])
@pytest.mark.parametrize("loss", sorted(RATES))
def test_mixing__agrees_with_the_literal_text_and_keeps_its_bound(loss, clip):
    for name, held, labels in streams(clip):
        if loss not in ("squared", "half_squared"):
            if not labels.any():
                continue
            labels = np.sign(labels)
        room = -(-len(held) // 8) * 8
        padded, losses = np.full((room, labels.size), np.nan), aligned_zeros(2, room)
        padded[: len(held)], losses[0, len(held) :] = held, np.inf
        predictions = np.zeros(labels.size)
        given = (LOSSES[loss], clip, RATES[loss](clip), padded, labels, losses)
        assert mix_rows(*given, np.zeros((3, room)), predictions) == labels.size
        expected, members = literal(loss, clip, held, labels)
        assert np.abs(predictions - expected).max() <= 1e-12 * clip, name
        assert np.abs(predictions).max() <= clip, name
        mine = values[loss](predictions.astype(LONG), labels.astype(LONG)).sum()
        bound = np.log(LONG(len(held))) / LONG(RATES[loss](clip))
        assert mine - members.min() <= bound * (1 + 1e-9), name
        if name == "all are equal":
            assert np.abs(predictions - np.clip(held[0], -clip, clip)).max() <= 1e-14 * clip


def members(loss):
    """21 configurations."""
    return [
        *(OjaSON(alpha=2.0**k, loss=loss) for k in range(-6, 7)),
        *(AdaGrad(step_size=2.0**k, loss=loss) for k in range(-5, 3)),
    ]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_mixture__of_learners_is_that_of_what_they_predict_by_themselves(loss, tmp_path):
    draw = np.random.default_rng(5)
    X = draw.standard_normal((1500, 6)) * 10.0 ** draw.integers(-3, 0, 6)
    y = np.sign(X @ draw.standard_normal(6) * 10 + draw.standard_normal(1500))
    held = np.array([one.progressive(X, y) for one in members(loss)])
    expected, _ = literal(loss, 1.0, held, y)
    model, found = Mixture(members(loss), loss=loss), []
    for piece in np.split(np.arange(1500), [1, 700, 1100]):
        found.append(model.progressive(X[piece], y[piece]))
        model.save(tmp_path / "mixture.koco")
        model = koco_stream.load(tmp_path / "mixture.koco")
    assert np.abs(np.concatenate(found) - expected).max() <= 1e-12
    assert model.weights_.sum() == pytest.approx(1.0)
    usual = Mixture(loss=loss)
    assert usual.progressive(X, y).tobytes() == np.concatenate(found).tobytes()
    assert usual.record(X[:2], y[:2])["weights"].to_pylist()[1] == usual.weights_.tolist()


@pytest.mark.filterwarnings("ignore:a label")
def test_mixture__of_a_grid_has_a_member_for_each_value():
    model = Mixture.grid(OjaSON, alpha={"powers_of_two": [-1, 1]}, sketch_size=[2, 3], clip=2.0)
    model.partial_fit([[1.0]], [3.0])
    assert len(model.members_) == model.weights_.size == 6
    assert model.record([[1.0]], [3.0])["labels_beyond_clip"].to_pylist() == [2]


def test_mixture__notices_that_its_members_changed_and_is_saved_as_it_learnt(tmp_path):
    one = AdaGrad(step_size=0.1)
    model = Mixture([one, AdaGrad()]).partial_fit([[1.0]], [1.0])
    before = model.members_
    one.set_params(step_size=7.0)
    refusal("members changed since learning began", model.predict, [[1.0]])
    model.save(tmp_path / "mixture.koco")
    assert Mixture.load(tmp_path / "mixture.koco").members_ == model.members_ == before


class Ends(Constant):
    """A constant that diverges where the label is 0.5, and could go on."""

    @classmethod
    def advance(cls, params, state, rows, labels, predictions):
        state, done = super().advance(params, state, rows, labels, predictions)
        for t in np.flatnonzero(labels == 0.5):
            done, predictions[t] = int(t), np.inf
        return state, done


def test_mixture__a_member_that_diverges_has_ended_in_any_block():
    X, y, found = np.ones((7, 1)), np.array([1.0, -1.0, 1.0, 0.5, -1.0, 1.0, 1.0]), set()
    for cut in range(1, 7):
        model = Mixture([AdaGrad(), Constant()])
        model._start(1)
        first, second = model._params.members
        model._params = model._params._replace(members=(first, second._replace(learner=Ends)))
        parts = zip(np.split(X, [cut]), np.split(y, [cut]), strict=True)
        found.add(b"".join(model.progressive(*part).tobytes() for part in parts))
        assert model.weights_.tolist() == [1.0, 0.0]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("hinge loss is not mixable", {"loss": "hinge"}),
        ("OjaSON, has clip = 2.0, and the Mixture 1.0", {"members": [OjaSON(clip=2.0)]}),
        ("list of learners or tables, not", {"members": []}),
        ("a table with a name, not 3", {"members": [3]}),
        ("did you mean 'OjaSON'", {"members": [{"name": "OjaSO"}]}),
        ("cannot be a member", {"members": [Mixture()]}),
        ("not a learner of the library", {"members": [type("AdaGrad", (AdaGrad,), {})()]}),
        ("seed must be a whole", {"members": [{"name": "RPSON", "seed": "x"}]}),
        ("clip 701 is too large", {"loss": "logistic", "clip": 701.0}),
        ("clip 1e-200 is too small", {"clip": 1e-200, "members": [Constant()]}),
        ("finite", {"clip": np.inf}),
    ],
)
def test_mixture__that_cannot_be_is_refused_with_the_reason(words, given):
    refusal(words, Mixture(**given).partial_fit, [[1.0]], [1.0])
