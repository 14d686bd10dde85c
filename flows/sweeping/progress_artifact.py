"""A flow run's progress in Prefect's pages."""

import math
import time
from uuid import UUID

from flows.runtime.recording import flow_run_here, key
from flows.sweeping.watching import Tally, Watcher

EVERY = 10.0  # seconds between updates


class ProgressArtifact(Watcher):
    """Writes the share of the runs that are done, at most once in `EVERY` seconds.

    If the server does not answer, it is not asked again, so that the work does not wait for it.
    """

    def __init__(self, name: str) -> None:
        self.key = key(f"progress-{name}")
        self.artifact: UUID | None = None
        self.next = 0.0 if flow_run_here() else math.inf

    def received(self, tally: Tally) -> None:
        """Write the share, if it is time."""
        share = tally.done / tally.runs
        if math.isinf(self.next) or (share < 1.0 and time.monotonic() < self.next):
            return
        from httpx import HTTPError
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        self.next = time.monotonic() + EVERY
        try:
            if self.artifact is None:
                self.artifact = create_progress_artifact(100.0 * share, key=self.key)
            else:
                update_progress_artifact(self.artifact, 100.0 * share)
        except HTTPError:
            self.next = math.inf
