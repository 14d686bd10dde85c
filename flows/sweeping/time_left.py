"""The time left of a sweep: the planned seconds of its work, corrected by what was measured.

A learner's planned seconds are corrected by those that its finished cohorts took, and those under
way have taken so far. A learner without any is corrected as all others together.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from koco_stream.engine.reporting import Report
from koco_stream.runs.cost_model import Costs
from koco_stream.runs.run import Cohort

PRIOR_SECONDS = 0.5  # the weight of the plan beside what was measured
MANY_COHORTS = 5000  # with more, the longest one is short beside all others
NOTABLE = 1.5  # factors beyond this are a reason for a longer time


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
        self.planned: dict[str, float] = defaultdict(float)  # of what has not ended, by learner
        for cohort in cohorts:
            self.planned[main_learner(cohort)] += cohort.seconds
        self.under_way: dict[str, Report] = {}
        self.finished: dict[str, Done] = defaultdict(Done)

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
            name = main_learner(cohort)
            self.planned[name] -= cohort.seconds
            self.finished[name] = self.finished[name].plus(cohort.seconds * (1 - begun), seconds)

    def work(self, cohort: Cohort, share: float) -> float:
        """The share of a cohort's work that is done after a share of its rounds."""
        return self.costs.work_done(cohort.runs, share) if 0.0 < share < 1.0 else share

    def factors(self) -> tuple[dict[str, float], float]:
        """The correction of each learner that has done some work, and that of all others."""
        done = dict(self.finished)
        for cohort_id, report in list(self.under_way.items()):
            cohort = self.waiting[cohort_id]
            worked = self.work(cohort, report.share) - self.work(cohort, report.begun)
            name = main_learner(cohort)
            done[name] = done.get(name, Done()).plus(worked * cohort.seconds, report.seconds)
        every = Done(sum(d.planned for d in done.values()), sum(d.measured for d in done.values()))
        return {name: one.factor for name, one in done.items()}, every.factor

    def seconds(self) -> float:
        """The expected seconds until all cohorts are done."""
        factors, other = self.factors()
        total = sum(
            max(planned, 0.0) * factors.get(name, other) for name, planned in self.planned.items()
        )
        done = {}
        for cohort_id, report in self.under_way.items():
            cohort = self.waiting[cohort_id]
            expected = cohort.seconds * factors.get(main_learner(cohort), other)
            done[cohort_id] = expected * self.work(cohort, report.share)
        longest = 0.0
        if len(self.waiting) < MANY_COHORTS:
            longest = max(
                (
                    cohort.seconds * factors.get(main_learner(cohort), other)
                    - done.get(cohort_id, 0.0)
                    for cohort_id, cohort in self.waiting.items()
                ),
                default=0.0,
            )
        return max((total - sum(done.values())) / self.workers, longest, 0.0)

    def reason(self) -> str:
        """Why the time left is longer than it was planned."""
        factors, _ = self.factors()
        slow = {name: factor for name, factor in factors.items() if factor > NOTABLE}
        if not slow:
            return "the workers compute more slowly than before"
        name = max(slow, key=lambda one: slow[one])
        return f"{name} takes {slow[name]:.1f} times as long as planned"


def main_learner(cohort: Cohort) -> str:
    """The learner of a cohort's first run, by which the cohort's planned time is corrected."""
    return cohort.runs[0].learner
