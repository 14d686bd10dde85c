"""Artifacts of a flow run in Prefect's pages: tables, links and progress.

Nothing happens without a flow run, or if Prefect's server does not answer.
"""

import math
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote
from uuid import UUID

PROGRESS_EVERY = 10.0  # seconds between updates of a flow run's progress
SHOWN = 50  # most rows of a table


def in_flow_run() -> bool:
    """Whether Prefect records what is done now as a flow run; its import takes seconds."""
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def key(name: str) -> str:
    """Turn a name into a key that Prefect allows: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def table_artifact(
    name: str, rows_of: Callable[[], Sequence[dict[str, Any]]], about: Sequence[str], *files: str
) -> None:
    """Add a table with the first rows to the flow run, with Markdown and links to files."""
    if not in_flow_run():
        return
    from httpx import HTTPError
    from prefect.artifacts import create_table_artifact

    links = [f"[{path}]({path if '://' in path else f'file://{quote(path)}'})" for path in files]
    with suppress(HTTPError):
        create_table_artifact(
            list(rows_of()[:SHOWN]), key=key(name), description="\n\n".join([*about, *links])
        )


class ProgressArtifact:
    """A flow run's progress in Prefect's pages, written at most once in `PROGRESS_EVERY` seconds.

    If the server does not answer, it is not asked again, so that the work does not wait for it.
    """

    def __init__(self, name: str) -> None:
        self.key = key(f"progress-{name}")
        self.artifact: UUID | None = None
        self.next = 0.0 if in_flow_run() else math.inf

    def show(self, share: float) -> None:
        """Show the share of the work that is done, between 0 and 1."""
        if math.isinf(self.next) or (share < 1.0 and time.monotonic() < self.next):
            return
        from httpx import HTTPError
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        self.next = time.monotonic() + PROGRESS_EVERY
        try:
            if self.artifact is None:
                self.artifact = create_progress_artifact(100.0 * share, key=self.key)
            else:
                update_progress_artifact(self.artifact, 100.0 * share)
        except HTTPError:
            self.next = math.inf
