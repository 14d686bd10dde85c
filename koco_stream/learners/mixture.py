"""`Mixture`: one pass over a stream without choosing a configuration."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from koco_stream.io.files import canonical_json
from koco_stream.learners.base import Learner
from koco_stream.learners.members import MEMBERS, USUAL, completed, learner_of, name_of
from koco_stream.learners.mixing import learning_rate, mix_rows, weights_of
from koco_stream.learners.named import AnyLearner
from koco_stream.learners.spec import SHARED, Public, StreamSize
from koco_stream.losses import LOSSES, OF_REAL_LABELS
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.numerics.instructions.point_panels import HALF
from koco_stream.streams.rows import Rows, frozen
from koco_stream.types import Array

HELD_ROWS = 4096  # whose predictions are held at once
NOTHING = frozen([], np.float64)  # labels of rows that are only predicted
REAL = {LOSSES[name] for name in OF_REAL_LABELS}


class Member(NamedTuple):
    """A member's class, its parameters, and its seed, if it has one of its own."""

    learner: AnyLearner
    params: Any
    seed: int | None


class Params(NamedTuple):
    """members: of each a `Member`. loss: its code. clip: C. rate: η."""

    members: tuple[Member, ...]
    loss: int
    clip: float
    rate: float


class States(tuple[Any, ...]):
    """The members' states, with the methods of a named tuple whose fields are numbers."""

    def _asdict(self) -> dict[str, Any]:
        return {str(k): state for k, state in enumerate(self)}

    def _replace(self, **changed: Any) -> "States":
        return States(changed.get(str(k), state) for k, state in enumerate(self))


class State(NamedTuple):
    """members: their states. losses: (2, room) each member's loss so far, as a sum of two numbers,
    infinite for one that has diverged. weights: (K,) in the next round.
    labels_beyond_clip: () labels for which the bound on the loss does not hold.
    """

    members: States
    losses: Array
    weights: Array
    labels_beyond_clip: Array


class Mixture(Learner):
    """Mixes the predictions of several learners: in one pass about as good as the best of them.

    Member k has the weight exp(−η L_k) by its loss L_k so far. The prediction is that of Vovk's
    aggregating forecaster, so that the loss is at most ln K/η above that of the best of K members,
    for labels in [−C, C] and any rows: η is 1 for the logistic loss, 1/(2C²) for the squared one,
    twice that for half of it, and 1/(2(1 + C)²) for the squared hinge. The hinge cannot be mixed.

    Members learn independently of each other; their predictions are held within [−C, C], and one
    that diverges has no weight from then on. They have the loss, clip and intercept of the mixture.

    Notes
    -----
    Vovk (1998), "A game of prediction with expert advice"; the rates are in docs/errata.md (M1).

    Examples
    --------
    >>> from koco_stream import AdaGrad, Mixture
    >>> model = Mixture([AdaGrad(step_size=0.1), AdaGrad(step_size=1.0)])
    >>> model.progressive([[1.0], [1.0]], [1.0, 1.0]).round(2).tolist()
    [0.0, 0.67]
    """

    parameters = (MEMBERS, *SHARED)
    grows = True

    def __init__(
        self,
        members: Sequence[Any] | None = None,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def grid(cls, learner: type[Learner], *, seed: int = 0, **grids: Any) -> Self:
        """A mixture of a learner with all combinations of values: lists, or `{"powers_of_two":
        [first, last]}`; `loss`, `clip` and `fit_intercept` have one value.
        """
        shared = {q.name: grids.pop(q.name) for q in SHARED if q.name in grids}
        return cls([{"name": name_of(learner), **grids}], **shared, seed=seed)

    @classmethod
    def refilled(cls, reduced: Public) -> Public:
        public = super().refilled(reduced)
        learning_rate(public["loss"], public["clip"])  # refuses some before their members do
        shared = {q.name: public[q.name] for q in SHARED}
        tables = public["members"] or MEMBERS.check(USUAL)
        return {**public, "members": [completed(table, shared) for table in tables]}

    @classmethod
    def to_params(cls, q: Public) -> Params:
        found = [(*learner_of(table), table.get("seed")) for table in q["members"]]
        members = [
            Member(learner, learner.to_params(learner.refilled(given)), seed)
            for learner, given, seed in found
        ]
        return Params(
            tuple(members), LOSSES[q["loss"]], q["clip"], learning_rate(q["loss"], q["clip"])
        )

    @classmethod
    def within(cls, params: Params, seconds: float) -> Params:
        members = (
            one._replace(params=one.learner.within(one.params, seconds)) for one in params.members
        )
        return params._replace(members=tuple(members))

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        members = [learner_of(table) for table in q["members"] if "seed" not in table]
        return any(learner.stochastic(learner.refilled(given)) for learner, given in members)

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        floats = HELD_ROWS * (2 + len(q["members"]))
        for learner, given in map(learner_of, q["members"]):
            public = learner.refilled(given)
            floats += learner.floats(public, size) + learner.shared(public, size).floats
        return floats

    @classmethod
    def initial_state(cls, params: Params, n_features: int, seed: int, dense: bool) -> State:
        members = [
            learner.initial_state(q, n_features, seed if own is None else own, dense)
            for learner, q, own in params.members
        ]
        n = len(members)
        losses = aligned_zeros(2, -(-n // HALF) * HALF)
        losses[0, n:] = np.inf
        return State(States(members), losses, np.full(n, 1.0 / n), np.zeros((), np.int64))

    @classmethod
    def advance(
        cls, params: Params, state: State, rows: Rows, labels: Array, predictions: Array
    ) -> tuple[State, int]:
        done, room = 0, state.losses.shape[1]
        for first in range(0, labels.size, HELD_ROWS):
            these = slice(first, first + HELD_ROWS)
            y, members = labels[these], list(state.members)
            some = rows._replace(indptr=rows.indptr[first : first + y.size + 1])
            held = np.full((room, y.size), np.nan)
            for k, (learner, q, _) in enumerate(params.members):
                if state.losses[0, k] < np.inf:
                    members[k], own = learner.advance(q, members[k], some, y, held[k])
                    held[k, own:] = np.nan  # from where it has diverged, in any block
            state = state._replace(members=States(members))
            work = np.zeros((3, room))
            rounds = mix_rows(*params[1:], held, y, state.losses, work, predictions[these])
            if params.loss in REAL:
                state.labels_beyond_clip[...] += (np.abs(y) > params.clip).sum()
            done += rounds
            if rounds < y.size:
                break
            state.weights[:] = weights_of(params.rate, state.losses)[: len(members)]
        return state, done

    @classmethod
    def expect(cls, params: Params, state: State, rows: Rows) -> Array:
        room = state.losses.shape[1]
        held, predictions = np.zeros((room, rows.n_rows)), np.zeros(rows.n_rows)
        for k, (learner, q, _) in enumerate(params.members):
            if state.losses[0, k] < np.inf:
                held[k] = learner.expect(  # type: ignore[union-attr]  # foreign ones are in sweeps only
                    q, state.members[k], rows
                )
        work = np.zeros((3, room))
        mix_rows(*params[1:], held, NOTHING, state.losses, work, predictions)
        return predictions

    def _given(self) -> dict[str, Any]:
        return {**super()._given(), "members": MEMBERS.check(self.members)}

    def stored_params(self) -> dict[str, Any]:
        stored = super().stored_params()
        return {**stored, **self.complete({q.name: stored[q.name] for q in self.parameters})}

    @property
    def members_(self) -> list[str]:
        """The name and parameters of each of the K members, as JSON."""
        return list(map(canonical_json, self.stored_params()["members"]))

    @property
    def weights_(self) -> Array:
        """The weights (K,) of the members in the next round."""
        return self._state.weights
