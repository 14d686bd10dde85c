"""What a flow run shows in Prefect's pages: tables, links and how far it is. Without a flow run, and where Prefect's server cannot be
reached, nothing: the work goes on without."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.context import FlowRunContext

from flows.tables import best_of, runs_of

EVERY = 10.0  # seconds between two notes of how far it is
SHOWN = 50  # rows of a table


def key(*words: str) -> str:
    """A key that Prefect allows: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def in_flow() -> bool:
    """Whether a flow run is under way, which artifacts belong to."""
    return FlowRunContext.get() is not None


def table_artifact(name: str, rows: Sequence[dict[str, Any]], about: str) -> None:
    """A table on the flow run, of the first rows; `about` stands above it."""
    if in_flow():
        with suppress(httpx.HTTPError):
            create_markdown_artifact(f"{about}\n\n{markdown_table(rows[:SHOWN])}", key=key(name))


def results_artifact(store: str, sweep: str, report: str) -> None:
    """The best configurations of a sweep, the report's place and the store's."""
    rows = best_of(runs_of(store, sweep))
    shown = [{name: row[name] for name in ("dataset", "learner", "params", "n_runs", "mean_loss_mean", "mean_loss_std")} for row in rows]
    table_artifact(f"results-{sweep}", shown, f"Report: {linked(report)}\n\nStore: {linked(store)}")


def linked(place: str) -> str:
    """A place as a link in Markdown."""
    address = place if "://" in place else f"file://{quote(place)}"
    return f"[{place}]({address})"


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a table in Markdown."""
    if not rows:
        return "(nothing)"
    lines = ["| " + " | ".join(rows[0]) + " |", "| " + " | ".join("---" for _ in rows[0]) + " |"]
    for row in rows:
        cells = ("" if v is None else f"{v:.6g}" if isinstance(v, float) else str(v).replace("|", "\\|") for v in row.values())
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


class ProgressArtifact:
    """How far a flow run is, noted now and then."""

    def __init__(self, name: str, description: str) -> None:
        self.name, self.description = name, description
        self.artifact: UUID | None = None
        self.last = 0.0

    def note(self, share: float) -> None:
        """So much of the work is done, between 0 and 1."""
        now = time.monotonic()
        if not in_flow():
            return
        if self.artifact is not None and share < 1.0 and now < self.last + EVERY:
            return
        self.last = now
        with suppress(httpx.HTTPError):
            if self.artifact is None:
                self.artifact = create_progress_artifact(100.0 * share, key=key(self.name), description=self.description)
            else:
                update_progress_artifact(self.artifact, 100.0 * share)
