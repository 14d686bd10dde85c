"""`predict` is the next prediction, to the bit: for every learner and input, also after the learner
was copied or kept.
"""

import copy
from contextlib import suppress
from itertools import combinations

import numpy as np
import pytest

import koco_stream
from koco_stream import OjaSON, WrongInput
from koco_stream.learners import LEARNERS
from koco_stream.learners.saved import state_arrays
from tests.golden.cases import Case, inputs, made
from tests.helpers.examples import EXAMPLES, public
from tests.helpers.wire import as_on_a_worker

HALF, AHEAD = 60, 4  # rows that are learnt from, and rows that are looked at


def bits(model):
    return [array.tobytes() for array in state_arrays(model._state).values()]


def leaves(state):
    for value in state:
        yield from leaves(value) if isinstance(value, tuple) else [value]


def holds_twice(model):
    """Whether two arrays of its state share memory: copies of them would not."""
    arrays = [array for array in leaves(model._state) if array.size]
    return any(np.may_share_memory(*pair) for pair in combinations(arrays, 2))


@pytest.mark.filterwarnings("ignore:the first rows")
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_predict__is_the_next_prediction_to_the_bit_and_changes_nothing(name, tmp_path):
    """Nor does reading the public attributes; and copies go on to the same bits."""
    for source in inputs():
        unlearnt, data, labels = made(Case(name, EXAMPLES[name], source), plain=True)
        model, rows = copy.deepcopy(unlearnt), data.X[HALF : HALF + AHEAD]
        try:
            model.partial_fit(data.X[:HALF], labels[:HALF])
        except FloatingPointError:  # what diverged has no next prediction
            continue
        assert not holds_twice(model), source
        before, seen, ahead = bits(model), public(model), model.predict(rows)
        model.save(tmp_path / "learner.koco")
        copies = {
            "itself": model,
            "copied": copy.deepcopy(model),
            "pickled": as_on_a_worker(model),
            "loaded": koco_stream.load(tmp_path / "learner.koco"),
        }
        for how, other in copies.items():
            assert other.predict(rows).tobytes() == ahead.tobytes(), (source, how)
            assert public(other) == seen, (source, how)
        unlearnt.partial_fit(data.X[:HALF], labels[:HALF])
        assert bits(unlearnt) == before, source
        limit = getattr(model._params, "clip", np.inf)
        for t in range(AHEAD):
            # Each row's own prediction is made when the rows before it have not been learnt from,
            # and without its label.
            other, row = copy.deepcopy(unlearnt), slice(HALF + t, HALF + t + 1)
            with suppress(FloatingPointError):
                first = np.clip(other.progressive(data.X[row], labels[row]), -limit, limit)
                assert first.tobytes() == ahead[t : t + 1].tobytes(), (source, t)
        ends = set()
        for other in (unlearnt, *copies.values()):
            try:
                ends.add(other.progressive(data.X[HALF:], labels[HALF:]).tobytes())
            except FloatingPointError:
                ends.add(other.rounds_)
        assert len(ends) == 1, source


class Mine(OjaSON):
    """A learner of a user's own, by inheritance."""

    def twice(self, X):
        return 2.0 * self.predict(X)


def test_subclass__learns_is_kept_and_read_as_what_it_is(tmp_path):
    draw = np.random.default_rng(0)
    X, y = draw.standard_normal((60, 5)), draw.uniform(-1, 1, 60)
    model = Mine(3, alpha=0.5).fit(X[:40], y[:40])
    assert repr(model) == "Mine(sketch_size=3, alpha=0.5)"
    model.save(tmp_path / "mine.koco")
    others = [Mine.load(tmp_path / "mine.koco"), as_on_a_worker(model), copy.deepcopy(model)]
    assert {type(other) for other in others} == {Mine}
    assert type(koco_stream.load(tmp_path / "mine.koco")) is OjaSON
    expected = OjaSON(3, alpha=0.5).progressive(X, y)[40:]
    for other in (model, *others):
        assert other.twice(X[40:41]) == 2.0 * expected[:1]
        assert other.progressive(X[40:], y[40:]).tobytes() == expected.tobytes()
    with pytest.raises(WrongInput, match="holds OjaSON, not RPSON"):
        koco_stream.RPSON.load(tmp_path / "mine.koco")
