"""The time left of a sweep: the planned seconds of its work, corrected by what was measured.

Planned seconds are corrected by those that finished cohorts of the same kind took, and those under
way have taken so far: of the same learner, with the same sampling of a dictionary if it has one. A
kind without any is corrected as its learner, and a learner without any as all others together.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from koco_stream.engine.reporting import Report
from koco_stream.learners import Sampling
from koco_stream.runs.cost_model import Costs
from koco_stream.runs.run import Cohort

PRIOR_SECONDS = 0.5  # the weight of the plan beside what was measured
MANY_COHORTS = 5000  # with more, the longest one is short beside all others
NOTABLE = 1.5  # factors beyond this are a reason for a longer time


Kind = tuple[str, Sampling | None]  # a learner, and how it samples its dictionary


class Done(NamedTuple):
    """Planned and measured seconds of work that is done."""

    planned: float = 0.0
    measured: float = 0.0

    def plus(self, planned: float, measured: float) -> "Done":
        """Both with more work added."""
        return Done(self.planned + planned, self.measured + measured)

    @property
    def factor(self) -> float:
        """Measured over planned seconds, towards 1 while little is done."""
        return (self.measured + PRIOR_SECONDS) / (self.planned + PRIOR_SECONDS)


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
    """

    def __init__(self, cohorts: Sequence[Cohort], costs: Costs, workers: int) -> None:
        self.costs, self.workers = costs, max(workers, 1)
        self.waiting = {cohort.cohort_id: cohort for cohort in cohorts}
        self.planned: dict[Kind, float] = defaultdict(float)  # of what has not ended
        for cohort in cohorts:
            self.planned[kind_of(cohort)] += cohort.seconds
        self.under_way: dict[str, Report] = {}
        self.finished: dict[Kind, Done] = defaultdict(Done)

    def hear(self, report: Report) -> None:
        """Take note of a cohort that is under way."""
        if report.cohort_id in self.waiting:
            self.under_way[report.cohort_id] = report

    def receive(self, cohort_id: str, seconds: float) -> None:
        """Take note of a cohort that has ended, after `seconds` of a worker's time."""
        cohort = self.waiting.pop(cohort_id, None)
        report = self.under_way.pop(cohort_id, None)
        if cohort is not None:
            begun = 0.0 if report is None else self.work(cohort, report.begun)
            kind = kind_of(cohort)
            self.planned[kind] -= cohort.seconds
            self.finished[kind] = self.finished[kind].plus(cohort.seconds * (1 - begun), seconds)

    def work(self, cohort: Cohort, share: float) -> float:
        """The share of a cohort's work that is done after a share of its rounds."""
        return self.costs.work_done(cohort.runs, share) if 0.0 < share < 1.0 else share

    def done(self) -> dict[Kind, Done]:
        """What is done of each kind: cohorts that have ended, and those under way."""
        done = dict(self.finished)
        for cohort_id, report in self.under_way.items():
            cohort = self.waiting[cohort_id]
            worked = self.work(cohort, report.share) - self.work(cohort, report.begun)
            kind = kind_of(cohort)
            done[kind] = done.get(kind, Done()).plus(worked * cohort.seconds, report.seconds)
        return done

    def seconds(self) -> float:
        """The expected seconds until all cohorts are done."""
        done = self.done()
        learners = by_learner(done)
        every = sum_of(done.values()).factor

        def expected(kind: Kind, planned: float) -> float:
            known = done.get(kind) or learners.get(kind[0])
            return planned * (every if known is None else known.factor)

        total = sum(expected(kind, max(planned, 0.0)) for kind, planned in self.planned.items())
        worked = {}
        for cohort_id, report in self.under_way.items():
            cohort = self.waiting[cohort_id]
            share = self.work(cohort, report.share)
            worked[cohort_id] = share * expected(kind_of(cohort), cohort.seconds)
        longest = 0.0
        if len(self.waiting) < MANY_COHORTS:
            longest = max(
                (
                    expected(kind_of(cohort), cohort.seconds) - worked.get(cohort_id, 0.0)
                    for cohort_id, cohort in self.waiting.items()
                ),
                default=0.0,
            )
        return max((total - sum(worked.values())) / self.workers, longest, 0.0)

    def reason(self) -> str:
        """Why the time left is longer than it was planned."""
        factors = {name: done.factor for name, done in by_learner(self.done()).items()}
        slow = {name: factor for name, factor in factors.items() if factor > NOTABLE}
        if not slow:
            return "the workers compute more slowly than before"
        name = max(slow, key=lambda one: slow[one])
        return f"{name} takes {slow[name]:.1f} times as long as planned"


def kind_of(cohort: Cohort) -> Kind:
    """By what a cohort's planned time is corrected: its first run's learner and sampling."""
    run = cohort.runs[0]
    return run.learner, run.learner_class.sampling(run.params)


def by_learner(done: dict[Kind, Done]) -> dict[str, Done]:
    """What is done of each learner."""
    names = {name for name, _ in done}
    return {name: sum_of(one for kind, one in done.items() if kind[0] == name) for name in names}


def sum_of(done: Iterable[Done]) -> Done:
    """All work together."""
    found = list(done)
    return Done(sum(one.planned for one in found), sum(one.measured for one in found))
