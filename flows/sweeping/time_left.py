"""The time left of a sweep: the planned seconds of its work, corrected by what was measured.

Planned seconds are multiplied by a factor, which is that of finished cohorts, and of those under
way, with the same settings: a run that diverges on the rows in one order will in another, and ends
early. Settings of which little is done are corrected as their kind: the same learner on the same
dataset, at the same cost of a round, as many side by side, with the same sampling of a dictionary
if it has one. A kind of which little is done is corrected as its learner, a learner as all others
together, and while little is done of all, the plan holds. What a cohort takes besides the rounds of
its runs is added: to read the rows, and more for the first one of its rows and labels, for which
they are copied and their best weights in hindsight are computed.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple, TypeVar

from koco_stream.engine.cohort import Receipt
from koco_stream.engine.reporting import Report
from koco_stream.learners import Sampling
from koco_stream.runs.cost_model import Costs
from koco_stream.runs.run import Cohort
from koco_stream.streams.stream import Stream

# The share of all planned seconds that has to be done until a measured factor counts as much as the
# one that it corrects: errors of less work than this hardly change the time left.
LITTLE = 0.03
NOTABLE = 1.5  # factors beyond this are a reason for a longer time


Key = TypeVar("Key", bound=Hashable)


class Kind(NamedTuple):
    """What is corrected together, if little is known of the settings: a learner, the hash of its
    dataset, how it samples its dictionary, the runs side by side, which share the processor's
    cache, and the planned seconds of a round of one, to one digit.
    """

    learner: str
    dataset: str
    sampling: Sampling | None
    runs: int
    each: float


class Group(NamedTuple):
    """Cohorts with the same runs on the rows of a dataset in several orders."""

    kind: Kind
    settings: int


class Done(NamedTuple):
    """Planned and measured seconds of work that is done."""

    planned: float = 0.0
    measured: float = 0.0

    def plus(self, planned: float, measured: float) -> "Done":
        """Both with more work added."""
        return Done(self.planned + planned, self.measured + measured)

    def factor(self, weight: float, before: float) -> float:
        """Measured over planned seconds, towards `before` with the weight of so many seconds."""
        if self.planned + weight <= 0.0:
            return before
        return (self.measured + weight * before) / (self.planned + weight)


class TimeLeft:
    """Estimates the time left of planned cohorts.

    Parameters
    ----------
    cohorts : sequence of Cohort
        The cohorts, none of which is done.
    costs : Costs
        What they were planned with.
    workers : int
        The number of cohorts that are computed at the same time.
    clock : callable
        Gives the time in seconds.
    """

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        costs: Costs,
        workers: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.costs, self.workers, self.clock = costs, max(workers, 1), clock
        self.waiting = {cohort.cohort_id: cohort for cohort in cohorts}
        self.groups = {cohort.cohort_id: self.group_of(cohort) for cohort in cohorts}
        self.planned: dict[Group, float] = defaultdict(float)  # of what has not ended
        for cohort in cohorts:
            self.planned[self.groups[cohort.cohort_id]] += cohort.seconds
        self.little = LITTLE * sum(self.planned.values())
        self.loading = self.workers  # first cohorts of workers that have not ended
        self.under_way: dict[str, Report] = {}
        self.first: dict[str, Report] = {}  # of those under way
        self.heard: dict[str, float] = {}  # when, by the clock
        self.finished: dict[Group, Done] = defaultdict(Done)
        self.new_rows = {rows_of(cohort) for cohort in cohorts}
        self.copied: dict[Stream, float] = {}  # when the first cohort of rows ended, by the clock
        self.beside: dict[bool, list[float]] = {True: [], False: []}  # by whether rows were new

    def hear(self, report: Report) -> None:
        """Take note of a cohort that is under way."""
        if report.cohort_id in self.waiting:
            self.under_way[report.cohort_id] = report
            self.first.setdefault(report.cohort_id, report)
            self.heard[report.cohort_id] = self.clock()

    def receive(self, receipt: Receipt) -> None:
        """Take note of a cohort that has ended."""
        cohort = self.waiting.pop(receipt.cohort_id, None)
        report = self.under_way.pop(receipt.cohort_id, None)
        self.heard.pop(receipt.cohort_id, None)
        self.first.pop(receipt.cohort_id, None)
        if cohort is None:
            return
        group, rows = self.groups[cohort.cohort_id], rows_of(cohort)
        self.planned[group] -= cohort.seconds
        # The first cohort of a worker also loads compiled code: a short one says little.
        misleads = self.loading > 0 and cohort.seconds < self.little
        self.loading -= 1
        if receipt.rounds > 0 and not misleads:  # without rounds it was there, or failed at once
            begun = 0.0 if report is None else self.work(cohort, report.begun)
            done = self.finished[group].plus(cohort.seconds * (1 - begun), receipt.scan_seconds)
            self.finished[group] = done
            beside = max(receipt.seconds - receipt.scan_seconds, 0.0)
            # Cohorts that began before the first one ended have waited for the same copy.
            waited = self.clock() - receipt.seconds < self.copied.get(rows, math.inf)
            self.beside[waited].append(beside)
        self.copied.setdefault(rows, self.clock())
        self.new_rows.discard(rows)

    def group_of(self, cohort: Cohort) -> Group:
        """By what a cohort's planned time is corrected; the kind is that of its first run."""
        run = cohort.runs[0]
        rounds = self.costs.sizes[run.stream.dataset_hash].rounds(run.stream)
        each = cohort.seconds / (len(cohort.runs) * max(rounds - cohort.begun, 1))
        sampling = run.learner_class.sampling(run.params)
        digit = float(f"{each:.0e}")
        kind = Kind(run.learner, run.stream.dataset_hash, sampling, len(cohort.runs), digit)
        settings = ";".join(f"{run.learner} {run.params}" for run in cohort.runs)
        return Group(kind, hash(settings))

    def work(self, cohort: Cohort, share: float) -> float:
        """The share of a cohort's planned work that is done after a share of its stream's rows."""
        before = cohort.begun / self.costs.sizes[cohort.stream.dataset_hash].rounds(cohort.stream)
        if not 0.0 < share < 1.0:
            return share
        done, begun = (self._of_stream(cohort, one) for one in (share, before))
        return max(done - begun, 0.0) / (1.0 - begun)

    def _of_stream(self, cohort: Cohort, share: float) -> float:
        return self.costs.work_done(cohort.runs, share) if share else 0.0

    def done(self) -> dict[Group, Done]:
        """What is done of each group: cohorts that have ended, and those under way."""
        done = dict(self.finished)
        for cohort_id, report in self.under_way.items():
            cohort = self.waiting[cohort_id]
            worked = self.work(cohort, report.share) - self.work(cohort, report.begun)
            group = self.groups[cohort_id]
            done[group] = done.get(group, Done()).plus(worked * cohort.seconds, report.seconds)
        return done

    def factors(self) -> dict[Group, float]:
        """By what the planned seconds of each group are multiplied."""
        done = self.done()
        every = sum_of(done.values()).factor(self.little, 1.0)
        learners = {
            name: one.factor(self.little, every)
            for name, one in by(lambda group: group.kind.learner, done).items()
        }
        kinds = {
            kind: one.factor(self.little, learners[kind.learner])
            for kind, one in by(lambda group: group.kind, done).items()
        }
        return {
            group: done.get(group, Done()).factor(
                self.little / len(self.planned),
                kinds.get(group.kind, learners.get(group.kind.learner, every)),
            )
            for group in self.planned
        }

    def seconds(self) -> float:
        """The expected seconds until all cohorts are done."""
        factors = self.factors()
        total = sum(max(planned, 0.0) * factors[group] for group, planned in self.planned.items())
        longest = 0.0
        for cohort_id, cohort in self.waiting.items():
            expected = rest = factors[self.groups[cohort_id]] * cohort.seconds
            if (report := self.under_way.get(cohort_id)) is not None:
                since = self.clock() - self.heard[cohort_id]
                rest = max((1.0 - self.work(cohort, report.share)) * expected - since, 0.0)
            total -= expected - rest
            longest = max(longest, rest)
        return max((total + self.beside_left(factors)) / self.workers, longest, 0.0)

    def beside_left(self, factors: dict[Group, float]) -> float:
        """The expected seconds besides the rounds of all cohorts that have not ended."""
        copying = dict[Stream, float]()  # by rows, what their first cohort has taken so far
        for cohort_id, report in self.under_way.items():
            cohort = self.waiting[cohort_id]
            if (rows := rows_of(cohort)) in self.new_rows:
                expected = factors[self.groups[cohort_id]] * cohort.seconds
                computing = (1.0 - self.work(cohort, report.share)) * expected
                silent = max(self.clock() - self.heard[cohort_id] - computing, 0.0)
                so_far = max(report.elapsed - report.seconds, 0.0) + silent
                copying[rows] = max(copying.get(rows, 0.0), so_far)
        known, usual = self.beside[True], self.beside[False]
        each = median(known) if known else max(copying.values(), default=0.0)
        new = sum(max(each - copying.get(rows, 0.0), 0.0) for rows in self.new_rows)
        others = len(self.waiting) - len(self.new_rows)
        return new + others * (median(usual) if usual else self.reading())

    def reading(self) -> float:
        """The seconds besides its rounds that a cohort under way needs for all rows of its stream,
        by what it took from its first report to its last.
        """
        found = [0.0]
        for cohort_id, report in self.under_way.items():
            first = self.first[cohort_id]
            took = (report.elapsed - first.elapsed) - (report.seconds - first.seconds)
            if report.share > first.share:
                found.append(took / (report.share - first.share))
        return max(found)

    def reason(self) -> str:
        """Why the time left is longer than it was planned."""
        done = by(lambda group: group.kind.learner, self.done())
        factors = {name: one.factor(self.little, 1.0) for name, one in done.items()}
        slow = {name: factor for name, factor in factors.items() if factor > NOTABLE}
        if not slow:
            return "the workers compute more slowly than before"
        name = max(slow, key=lambda one: slow[one])
        return f"{name} takes {slow[name]:.1f} times as long as planned"


def rows_of(cohort: Cohort) -> Stream:
    """The stream of a cohort in no order: its rows and labels."""
    return replace(
        cohort.stream, order="as-stored", order_seed=None, window_rows=None, sharding=None
    )


def by(key: Callable[[Group], Key], done: dict[Group, Done]) -> dict[Key, Done]:
    """What is done of all groups with the same key."""
    found: dict[Key, Done] = defaultdict(Done)
    for group, one in done.items():
        found[key(group)] = found[key(group)].plus(*one)
    return found


def sum_of(done: Iterable[Done]) -> Done:
    """All work together."""
    found = list(done)
    return Done(sum(one.planned for one in found), sum(one.measured for one in found))
