"""Artifacts of a flow run in Prefect's pages: tables and links.

Nothing happens without a flow run, or if Prefect's server does not answer.
"""

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

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
