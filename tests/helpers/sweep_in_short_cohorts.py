"""Run by tests instead of `koco`: cohorts of at most KOCO_TEST_RUNS runs, with checkpoints every
KOCO_TEST_SECONDS, if these are set.
"""

import os
from dataclasses import replace

import flows.cli
import flows.sweeping.planning
from koco_stream.runs.planner import Limits

limits_of = flows.sweeping.planning.limits_of


def short_limits(*words: object) -> Limits:
    found = limits_of(*words)
    return replace(
        found,
        cohort_runs=int(os.environ.get("KOCO_TEST_RUNS", found.cohort_runs)),
        checkpoint_seconds=float(os.environ.get("KOCO_TEST_SECONDS", found.checkpoint_seconds)),
    )


if __name__ == "__main__":
    flows.sweeping.planning.limits_of = short_limits
    flows.cli.main()
