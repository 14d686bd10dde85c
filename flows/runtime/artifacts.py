"""Artifacts of a flow run in Prefect's pages: tables, links and progress.

Nothing happens without a flow run, or if Prefect's server does not answer.
"""

import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

import httpx
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)
from prefect.context import FlowRunContext

EVERY = 10.0  # seconds between updates of the progress
LAST_SECONDS = 5.0  # longest wait for the last update
SHOWN = 50  # most rows of a table


def key(*words: str) -> str:
    """Turn words into a key that Prefect allows: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def in_flow() -> bool:
    """Whether this code runs within a Prefect flow run, to which artifacts can be added."""
    return FlowRunContext.get() is not None


def table_artifact(name: str, rows: Sequence[dict[str, Any]], about: str) -> None:
    """Add a table with the first rows to the flow run, below the text `about`."""
    if in_flow():
        with suppress(httpx.HTTPError):
            create_markdown_artifact(f"{about}\n\n{markdown_table(rows[:SHOWN])}", key=key(name))


def linked(path: str) -> str:
    """A path as a link in Markdown."""
    return f"[{path}]({path if '://' in path else f'file://{quote(path)}'})"


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """Format rows as a Markdown table."""
    if not rows:
        return "(nothing)"
    lines = ["| " + " | ".join(rows[0]) + " |", "| " + " | ".join("---" for _ in rows[0]) + " |"]
    for row in rows:
        cells = (
            "" if v is None else f"{v:.6g}" if isinstance(v, float) else str(v).replace("|", "\\|")
            for v in row.values()
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


class ProgressArtifact:
    """Context manager that shows a flow run's progress in Prefect's pages.

    Set `share`, the share of the work that is done, between 0 and 1. A thread sends it, so the work
    never waits for Prefect's server.
    """

    def __init__(self, name: str, description: str) -> None:
        self.name, self.description = name, description
        self.share, self.noted = 0.0, -1.0
        self.artifact: UUID | None = None
        self.over = threading.Event()
        # the thread needs this context, which has the flow run
        self.writing = threading.Thread(target=copy_context().run, args=(self._write,), daemon=True)

    def __enter__(self) -> Self:
        if in_flow():
            self.writing.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        if self.writing.ident is not None:
            self.writing.join(LAST_SECONDS)

    def _write(self) -> None:
        over = False
        while not over:
            over, share = self.over.wait(EVERY), self.share
            if share == self.noted:
                continue
            with suppress(httpx.HTTPError):
                if self.artifact is None:
                    self.artifact = create_progress_artifact(
                        100.0 * share, key=key(self.name), description=self.description
                    )
                else:
                    update_progress_artifact(self.artifact, 100.0 * share)
                self.noted = share
