"""Runs, cohorts and runs in progress. The identity of a run or cohort is a hash of its content."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from koco_stream.errors import TimeLimit, WrongInput
from koco_stream.io.files import canonical_json, content_hash, json_text, text_hash
from koco_stream.learners import AnyLearner, Public, Reference, learner_named, shown_name
from koco_stream.losses import LOSSES
from koco_stream.metrics import Measurement, Metered
from koco_stream.streams.stream import Stream
from koco_stream.types import Array


@dataclass(frozen=True)
class Measured:
    """What a sweep asks for of its runs' predictions, beside loss and error.

    Parameters
    ----------
    metrics : tuple of str
        Names of `koco_stream.metrics.METRICS`, sorted.
    window : int, optional
        The rounds of a window over which all of them are measured too.
    keep_predictions : bool
        Whether the prediction of every round is kept.
    """

    metrics: tuple[str, ...] = ()
    window: int | None = None
    keep_predictions: bool = False

    @cached_property
    def identity_text(self) -> str:
        """What of this is in a run's identity, as canonical JSON: a run that was not measured so is
        run again.
        """
        return canonical_json(asdict(self))


NOTHING_MORE = Measured()


@dataclass(frozen=True)
class Run:
    """One configuration (a learner, its parameters and its seed) on one stream.

    `params` holds all parameters except those that cannot change the result. Neither these nor the
    seed of a deterministic learner, which is None, enter the run's identity.
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
        """Make a run from user-given parameters: checked, completed, reduced to those with an
        effect.

        Raises `WrongInput` as `Spec.complete` does.
        """
        return Run(stream, *configuration_of(learner, given, learner_seed), measured)

    @cached_property
    def run_id(self) -> str:
        """A hash (32 hexadecimal digits) of everything that can change the run's numbers.

        That is the stream's identity, the learner, its numbers_version, its parameters, its seed,
        and what is measured beside loss and error. The canonical JSON is assembled here, since many
        runs have the same stream.
        """
        seed = "null" if self.learner_seed is None else self.learner_seed
        version = self.learner_class.numbers_version
        measured = self.measured.identity_text
        return text_hash(
            f'{{"learner":"{self.learner}","learner_seed":{seed},"measured":{measured},'
            f'"numbers_version":{version},"params":{canonical_json(self.params)},"stream":{self.stream.identity_text}}}'
        )

    @property
    def learner_class(self) -> AnyLearner:
        """The class of the learner."""
        return learner_named(self.learner)

    @property
    def loss(self) -> str:
        """The loss that is measured, a name of `LOSSES`."""
        return self.learner_class.measured_loss(self.params)

    @property
    def adds_intercept(self) -> bool:
        """Whether a feature that is always 1 is added to the rows."""
        return self.learner_class.adds_intercept(self.params)

    @property
    def file(self) -> Reference | None:
        """The reference of its learner, if that is a file of a user."""
        reference = Reference.of(self.learner)
        return reference if reference.of_file else None

    def until(self, rounds: int) -> "Run":
        """The run that ends after so many rounds."""
        return replace(self, stream=replace(self.stream, max_rows=rounds))

    def metered(self, seen: "Seen") -> Metered:
        """What a measurement of the run is to compute."""
        names = self.measured.metrics
        window = self.measured.window
        classes = seen.classes if self.stream.multiclass is not None else ()
        return Metered(names, LOSSES[self.loss], seen.task, seen.n_rounds, window, classes)

    def check_labels(self, classes: Sequence[float], task: str, names: Sequence[str] = ()) -> None:
        """Raise `WrongInput`, with the remedy, if the loss does not support a dataset's labels.

        The classes may have `names`.
        """
        name = repr(self.stream.dataset)
        positive = self.stream.positive_class
        words = list(map(json_text, names)) or [f"{c:.15g}" for c in classes]
        shown = ", ".join(words[:30])
        if positive is not None and task == "regression":
            raise WrongInput(
                f"dataset {name} has real targets, not classes; leave out positive_class"
            )
        if self.stream.multiclass is not None:
            self._check_multiclass(classes, task)
            return
        if positive is not None and classes and positive not in classes:
            raise WrongInput(f"dataset {name} has no label {positive:.15g}; its labels are {shown}")
        if positive is None and task == "classification" and not set(classes) <= {-1.0, 1.0}:
            raise WrongInput(
                f"dataset {name} has the labels {shown}, not -1 and +1; add positive_class ="
                f" {words[-1]} (or another of them) to its [[dataset]] table to learn that class"
                " against the rest"
                + ', or multiclass = "one-vs-rest" to learn all of them'
                * (len(classes) > 2)
            )
        if task == "regression" and self.learner_class.classifies(self.params):
            raise WrongInput(
                f"{shown_name(self.learner)} with the {self.loss} loss needs labels -1 and +1,"
                f" but dataset {name} has real targets; take "
                + ("a regressor" if self.learner_class.numbers == "foreign" else 'loss = "squared"')
            )

    def _check_multiclass(self, classes: Sequence[float], task: str) -> None:
        """Raise `WrongInput` if not all classes of a dataset can be learnt."""
        name = repr(self.stream.dataset)
        if self.stream.positive_class is not None:
            raise WrongInput(f"{name} has both; leave out positive_class, or leave out multiclass")
        if task == "regression" or len(classes) < 3:
            kind = "real targets" if task == "regression" else f"{len(classes)} classes"
            raise WrongInput(
                f"dataset {name} has {kind}, but multiclass needs three or more classes; leave"
                " out multiclass"
            )
        if self.learner_class.numbers == "foreign":
            raise WrongInput(
                f"{shown_name(self.learner)} can only learn two classes, but {name} has"
                " multiclass; put it into a sweep of its own, with positive_class"
            )


def configuration_of(
    learner: str, given: dict[str, Any], learner_seed: int
) -> tuple[str, dict[str, Any], int | None]:
    """A learner's name, its parameters and its seed, reduced to what can affect the result.

    Raises `WrongInput` as `Spec.complete` does.
    """
    chosen = learner_named(learner)
    public = chosen.complete(given)
    return learner, chosen.identifying(public), learner_seed if chosen.stochastic(public) else None


class Seen(NamedTuple):
    """What a run sees of its stream.

    Parameters
    ----------
    n_features, n_rounds : int
        Its features, without the intercept, and its rounds.
    dense : bool
        Whether the dataset's rows have all their features.
    task : str
        "regression" or "classification".
    classes : tuple of float
        The dataset's labels, sorted; empty for regression.
    """

    n_features: int
    n_rounds: int = 0
    dense: bool = False
    task: str = "regression"
    classes: tuple[float, ...] = ()


@dataclass
class RunState:
    """A run in progress: the states of its learner, totals, loss curve, metrics and predictions.

    `states` has one state, or one of each class if the stream is read one-vs-rest; it is empty if
    the learner could not start. `totals` are rounds, cumulative loss and mistakes. `curve` (k, 3)
    has the totals at given rounds, with `at` of its lines filled so far. `seconds` is the time
    spent in its scan, of which it may take `time_limit`. `measurement` is None if only loss and
    error are measured. `predictions` (n_rounds,) are those that are kept, or it is empty.
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
        """A run before its first round, with a curve at the rounds `points`.

        If the learner cannot start, the run has the status "failed".
        """
        learner = run.learner_class
        params = learner.to_params(learner.refilled(run.params))
        started = RunState(
            run,
            params,
            [],
            curve=np.zeros((points.size, 3)),
            time_limit=time_limit or learner.time_limit,
        )
        if learner.numbers == "foreign":  # it may hang within a block
            started.params = params._replace(time_limit=started.time_limit)
        width = seen.n_features + run.adds_intercept
        count = run.stream.n_states(len(seen.classes))
        if run.measured.metrics or run.measured.window:
            started.measurement = Measurement(run.metered(seen))
        if run.measured.keep_predictions:
            started.predictions = np.full(seen.n_rounds, np.nan)
        try:
            started.states = [
                learner.begun(started.params, width, run.learner_seed or 0, seen.dense)
                for _ in range(count)
            ]
        except Exception as error:
            started.fail(error)
        return started

    @property
    def is_late(self) -> bool:
        """Whether it has reached its time limit, and is not stopped yet."""
        return self.status == "ok" and self.seconds >= self.time_limit

    def fail(self, error: Exception) -> None:
        """Set the run's status to "failed", or to "stopped" by its limit, with the error's text."""
        self.status = "stopped" if isinstance(error, TimeLimit) else "failed"
        self.error = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class Pause(NamedTuple):
    """Where runs go on: after the rounds `rounds`, from the checkpoint of the cohort `cohort_id`.

    Without either, they begin at the first round.
    """

    rounds: int = 0
    cohort_id: str = ""


NO_PAUSE = Pause()


class Rungs(NamedTuple):
    """What a plan knows of the rungs of successive halving.

    Parameters
    ----------
    later : mapping of Stream to tuple of int
        The rounds of the later rungs of each stream that is cut at a rung, increasing.
    paused : mapping of str to Pause
        By run_id, where runs go on that have paused.
    """

    later: Mapping[Stream, tuple[int, ...]]
    paused: Mapping[str, Pause]

    def pause(self, run: Run) -> Pause:
        """Where a run goes on, or begins."""
        return self.paused.get(run.run_id, NO_PAUSE)

    def last(self, stream: Stream, rounds: int) -> int:
        """The rounds of the last rung of a stream that has so many rounds itself."""
        return self.later.get(stream, (rounds,))[-1]


NO_RUNGS = Rungs({}, {})


@dataclass(frozen=True)
class Cohort:
    """A group of runs that share one pass over a stream.

    `seconds` is the planner's estimate of its duration. The states of its runs are saved every
    `checkpoint_rounds` rounds (0: never), and a worker has `states_bytes` of memory for them (0: it
    is not known). The end of its stream is a pause, if its runs may go on for more rounds, which
    are `later`: the last checkpoint is not removed. They go on in cohorts of fewer runs, which have
    this `pause`. `time_limit` are the most seconds of a run, None if the sweep has no such limit.
    """

    stream: Stream
    runs: tuple[Run, ...]
    seconds: float
    checkpoint_rounds: int = 0
    states_bytes: int = 0
    later: tuple[int, ...] = ()
    pause: Pause = NO_PAUSE
    time_limit: float | None = None

    @property
    def seconds_allowed(self) -> float:
        """The most seconds of all its runs."""
        return sum(self.time_limit or run.learner_class.time_limit for run in self.runs)

    @property
    def singles(self) -> "list[Cohort]":
        """Each of its runs as a cohort."""
        seconds = self.seconds / len(self.runs)
        return [replace(self, runs=(run,), seconds=seconds) for run in self.runs]

    @property
    def resumable(self) -> bool:
        """Whether its states can be saved: those of foreign learners cannot."""
        return all(run.learner_class.numbers == "own" for run in self.runs)

    @cached_property
    def cohort_id(self) -> str:
        """A hash of the run_ids of the cohort's runs."""
        return content_hash([run.run_id for run in self.runs])


def without_repeats(runs: Sequence[Run]) -> list[Run]:
    """The runs in their given order, duplicates (equal run_id) removed."""
    return list({run.run_id: run for run in reversed(runs)}.values())[::-1]
