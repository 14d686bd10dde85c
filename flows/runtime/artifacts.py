"""Artifacts of a flow run in Prefect's pages: tables, links and progress.

Nothing happens without a flow run, or if Prefect's server does not answer.
"""

import math
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
from prefect.artifacts import (
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.context import FlowRunContext

PROGRESS_EVERY = 10.0  # seconds between updates of a flow run's progress
SHOWN = 50  # most rows of a table


def key(name: str) -> str:
    """Turn a name into a key that Prefect allows: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def linked(path: str) -> str:
    """A path as a link in Markdown."""
    return f"[{path}]({path if '://' in path else f'file://{quote(path)}'})"


def table_artifact(name: str, rows: Sequence[dict[str, Any]], about: str) -> None:
    """Add a table with the first rows to the flow run, with the text `about` in Markdown."""
    if FlowRunContext.get() is not None:
        with suppress(httpx.HTTPError):
            create_table_artifact(list(rows[:SHOWN]), key=key(name), description=about)


class ProgressArtifact:
    """A flow run's progress in Prefect's pages, updated at most once in `PROGRESS_EVERY` seconds.

    If the server does not answer, it is not asked again, so that the work does not wait for it.
    """

    def __init__(self, name: str, description: str) -> None:
        self.named = {"key": key(name), "description": description}
        self.artifact: UUID | None = None
        self.next = 0.0 if FlowRunContext.get() else math.inf

    def show(self, share: float) -> None:
        """Show the share of the work that is done, between 0 and 1."""
        if math.isinf(self.next) or (share < 1.0 and time.monotonic() < self.next):
            return
        self.next = time.monotonic() + PROGRESS_EVERY
        try:
            if self.artifact is None:
                self.artifact = create_progress_artifact(100.0 * share, **self.named)
            else:
                update_progress_artifact(self.artifact, 100.0 * share)
        except httpx.HTTPError:
            self.next = math.inf
