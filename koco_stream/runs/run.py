"""Runs, cohorts and runs in progress."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from koco_stream.errors import TimeLimit, refuse_first
from koco_stream.io.files import canonical_json, content_hash, json_text, text_hash
from koco_stream.learners import AnyLearner, Mixture, Public, Reference, learner_named, shown_name
from koco_stream.metrics import Measurement, Metered
from koco_stream.streams.stream import Stream
from koco_stream.types import Array


@dataclass(frozen=True)
class Measured:
    """What a sweep measures beside loss and error; `window` is a number of rounds."""

    metrics: tuple[str, ...] = ()
    window: int | None = None
    keep_predictions: bool = False

    @cached_property
    def identity_text(self) -> str:
        """This as canonical JSON, for a run's identity."""
        return canonical_json(asdict(self))


NOTHING_MORE = Measured()


@dataclass(frozen=True)
class Run:
    """One configuration (learner, parameters, seed) on one stream, without what has no effect: such
    a parameter is left out, such a seed is None.
    """

    stream: Stream
    learner: str
    params: Public
    learner_seed: int | None
    measured: Measured = NOTHING_MORE

    @staticmethod
    def of(
        stream: Stream,
        learner: str,
        given: dict[str, Any],
        learner_seed: int,
        measured: Measured = NOTHING_MORE,
    ) -> "Run":
        """Make a run from a user's parameters."""
        return Run(stream, *configuration_of(learner, given, learner_seed), measured)

    @cached_property
    def run_id(self) -> str:
        """A hash (32 hexadecimal digits) of everything that can change the numbers."""
        seed = "null" if self.learner_seed is None else self.learner_seed
        return text_hash(
            f'{{"learner":"{self.learner}","learner_seed":{seed},'
            f'"measured":{self.measured.identity_text},'
            f'"numbers_version":{self.learner_class.numbers_version},'
            f'"params":{canonical_json(self.params)},"stream":{self.stream.identity_text}}}'
        )

    @property
    def learner_class(self) -> AnyLearner:
        """The learner's class."""
        return learner_named(self.learner)

    @property
    def loss(self) -> str:
        """The name of the measured loss."""
        return self.learner_class.measured_loss(self.params)

    @property
    def adds_intercept(self) -> bool:
        """Whether the rows get a feature that is always 1."""
        return self.learner_class.adds_intercept(self.params)

    @property
    def learners(self) -> list[str]:
        """Its learner, and that one's members."""
        members = self.params["members"] if self.learner == Mixture.__name__ else ()
        return [self.learner, *(one["name"] for one in members)]

    @property
    def is_own(self) -> bool:
        """Whether its numbers are the same in any process, and its state can be saved."""
        return all(learner_named(name).numbers == "own" for name in self.learners)

    @property
    def time_limit(self) -> float:
        """Its seconds in a sweep without a limit."""
        return min(learner_named(name).time_limit for name in self.learners)

    @property
    def open_ended(self) -> bool:
        """Whether the rows decide how large its state becomes."""
        return any(learner_named(name).open_ended for name in self.learners)

    @property
    def files(self) -> list[Reference]:
        """The references of its learners that are users' files."""
        return [one for one in map(Reference.of, self.learners) if one.of_file]

    def until(self, rounds: int) -> "Run":
        """The run that ends after so many rounds."""
        return replace(self, stream=replace(self.stream, max_rows=rounds))

    def metered(self, seen: "Seen") -> Metered:
        """What the run's measurement computes."""
        classes = seen.classes if self.stream.multiclass is not None else ()
        measured = self.measured
        return Metered(measured.metrics, seen.task, seen.n_rounds, measured.window, classes)

    def check_labels(self, classes: Sequence[float], task: str, names: Sequence[str] = ()) -> None:
        """Raise `WrongInput` if the loss does not suit a dataset's classes, shown by `names`."""
        name, positive = repr(self.stream.dataset), self.stream.positive_class
        words = list(map(json_text, names)) or [f"{c:.15g}" for c in classes]
        shown, last = ", ".join(words[:30]), "".join(words[-1:])
        wanted = "" if positive is None else f"{positive:.15g}"
        is_real, is_foreign = task == "regression", self.learner_class.numbers == "foreign"
        of_all = self.stream.multiclass is not None
        kind = "real targets" if is_real else f"{len(classes)} classes"
        as_they_are = not (wanted or of_all or is_real)
        problems = (
            (
                bool(wanted) and is_real,
                f"dataset {name} has real targets, not classes; leave out positive_class",
            ),
            (
                bool(wanted) and of_all,
                f"{name} has both; leave out positive_class, or leave out multiclass",
            ),
            (
                of_all and (is_real or len(classes) < 3),
                f"dataset {name} has {kind}, but multiclass needs three or more classes; leave"
                " out multiclass",
            ),
            (
                of_all and is_foreign,
                f"{shown_name(self.learner)} can only learn two classes, but {name} has"
                " multiclass; put it into a sweep of its own, with positive_class",
            ),
            (
                bool(wanted and classes) and positive not in classes,
                f"dataset {name} has no label {wanted}; its labels are {shown}",
            ),
            (
                as_they_are and not set(classes) <= {-1.0, 1.0},
                f"dataset {name} has the labels {shown}, not -1 and +1; add positive_class ="
                f" {last} (or another of them) to its [[dataset]] table to learn that class"
                " against the rest"
                + ', or multiclass = "one-vs-rest" to learn all of them'
                * (len(classes) > 2),
            ),
            (
                is_real and self.learner_class.classifies(self.params),
                f"{shown_name(self.learner)} with the {self.loss} loss needs labels -1 and +1,"
                f" but dataset {name} has real targets; take "
                + ("a regressor" if is_foreign else 'loss = "squared"'),
            ),
        )
        refuse_first(problems)


def configuration_of(
    learner: str, given: dict[str, Any], learner_seed: int
) -> tuple[str, dict[str, Any], int | None]:
    """A learner's name, parameters and seed, reduced to what has an effect."""
    chosen = learner_named(learner)
    public = chosen.complete(given)
    return learner, chosen.identifying(public), learner_seed if chosen.stochastic(public) else None


class Seen(NamedTuple):
    """What a run sees of its stream: its size without intercept, and its classes."""

    n_features: int
    n_rounds: int = 0
    dense: bool = False
    task: str = "regression"
    classes: tuple[float, ...] = ()


@dataclass
class RunState:
    """A run in progress.

    `states` has one state, or one of each class, or none if the learner could not start. `totals`
    are rounds, cumulative loss and mistakes, as in `curve` (k, 3), of which `at` lines are filled.
    `seconds` is the time in its scan. `predictions` (n_rounds,) may be empty.
    """

    run: Run
    params: Any
    states: list[Any]
    curve: Array
    totals: Array = field(default_factory=lambda: np.zeros(3))
    at: int = 0
    seconds: float = 0.0
    time_limit: float = np.inf
    status: str = "ok"
    error: str | None = None
    measurement: Measurement | None = None
    predictions: Array = field(default_factory=lambda: np.zeros(0))

    @staticmethod
    def start(run: Run, seen: Seen, points: Array, time_limit: float | None = None) -> "RunState":
        """A run before its first round, or failed if its learner cannot start."""
        learner = run.learner_class
        params = learner.to_params(learner.refilled(run.params))
        limit = time_limit or run.time_limit
        asked = run.measured
        started = RunState(
            run,
            learner.within(params, limit),
            [],
            curve=np.zeros((points.size, 3)),
            time_limit=limit,
            measurement=Measurement(run.metered(seen)) if asked.metrics or asked.window else None,
            predictions=np.full(seen.n_rounds if asked.keep_predictions else 0, np.nan),
        )
        width = seen.n_features + run.adds_intercept
        try:
            started.states = [
                learner.initial_state(started.params, width, run.learner_seed or 0, seen.dense)
                for _ in range(run.stream.n_states(len(seen.classes)))
            ]
        except Exception as error:
            started.fail(error)
        return started

    @property
    def is_late(self) -> bool:
        """Whether it has reached its time limit and is not stopped yet."""
        return self.status == "ok" and self.seconds >= self.time_limit

    def fail(self, error: Exception) -> None:
        """End the run as "failed", or "stopped" by its limit."""
        self.status = "stopped" if isinstance(error, TimeLimit) else "failed"
        self.error = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class Pause(NamedTuple):
    """Where runs go on: after so many rounds, in a cohort's checkpoint."""

    rounds: int = 0
    cohort_id: str = ""


NO_PAUSE = Pause()


class Rungs(NamedTuple):
    """The rungs of successive halving that a plan knows."""

    later: Mapping[Stream, tuple[int, ...]]
    paused: Mapping[str, Pause]

    def pause(self, run: Run) -> Pause:
        """Where a run begins."""
        return self.paused.get(run.run_id, NO_PAUSE)

    def last(self, stream: Stream, rounds: int) -> int:
        """The last rung, in rounds, of a stream of so many rounds."""
        return self.later.get(stream, (rounds,))[-1]


NO_RUNGS = Rungs({}, {})


@dataclass(frozen=True)
class Cohort:
    """A group of runs that share one pass over a stream.

    States are saved each `checkpoint_seconds`, and have `states_bytes` of memory. Runs that may go
    on for `later` rounds leave their last checkpoint, from which smaller cohorts go on, with this
    `pause`.
    """

    stream: Stream
    runs: tuple[Run, ...]
    seconds: float
    states_bytes: int = 1 << 62
    later: tuple[int, ...] = ()
    pause: Pause = NO_PAUSE
    time_limit: float | None = None
    checkpoint_seconds: float = np.inf

    @property
    def seconds_allowed(self) -> float:
        """The most seconds of all its runs."""
        return sum(self.time_limit or run.time_limit for run in self.runs)

    @property
    def singles(self) -> "list[Cohort]":
        """Each run as a cohort."""
        return [
            replace(self, runs=(run,), seconds=self.seconds / len(self.runs)) for run in self.runs
        ]

    @property
    def resumable(self) -> bool:
        """Whether its states can be saved, unlike foreign learners'."""
        return all(run.is_own for run in self.runs)

    @cached_property
    def cohort_id(self) -> str:
        """A hash of its run_ids."""
        return content_hash([run.run_id for run in self.runs])


def without_repeats(runs: Sequence[Run]) -> list[Run]:
    """The runs in order, each run_id once."""
    return list({run.run_id: run for run in reversed(runs)}.values())[::-1]
