"""Run by tests instead of `koco`: cohorts of at most KOCO_TEST_RUNS runs, with checkpoints every
KOCO_TEST_SECONDS, if these are set; and each receipt becomes a line of the file KOCO_TEST_RECEIPTS,
if that is.
"""

import json
import os
from dataclasses import asdict, replace

import flows.cli
import flows.sweeping.planning
import flows.sweeping.progress
from koco_stream.engine.cohort import Receipt
from koco_stream.runs.planner import Limits

limits_of, receive = (
    flows.sweeping.planning.limits_of,
    flows.sweeping.progress.SweepProgress.receive,
)


def short_limits(*words: object) -> Limits:
    found = limits_of(*words)
    return replace(
        found,
        cohort_runs=int(os.environ.get("KOCO_TEST_RUNS", found.cohort_runs)),
        checkpoint_seconds=float(os.environ.get("KOCO_TEST_SECONDS", found.checkpoint_seconds)),
    )


def noted(progress: flows.sweeping.progress.SweepProgress, receipt: Receipt) -> None:
    with open(os.environ["KOCO_TEST_RECEIPTS"], "a") as file:
        file.write(json.dumps(asdict(receipt)) + "\n")
    receive(progress, receipt)


if __name__ == "__main__":
    flows.sweeping.planning.limits_of = short_limits
    if "KOCO_TEST_RECEIPTS" in os.environ:
        flows.sweeping.progress.SweepProgress.receive = noted
    flows.cli.main()
