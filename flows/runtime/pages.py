"""Texts and limits of what stands in Prefect's pages."""

import re
from urllib.parse import quote

PROGRESS_EVERY = 10.0  # seconds between updates of a flow run's progress
SHOWN = 50  # most rows of a table


def key(name: str) -> str:
    """Turn a name into a key that Prefect allows: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def linked(path: str) -> str:
    """A path as a link in Markdown."""
    return f"[{path}]({path if '://' in path else f'file://{quote(path)}'})"


def results_key(sweep: str) -> str:
    """The key of the table with a sweep's results."""
    return key(f"results-{sweep}")


def about_results(report: str, store: str) -> str:
    """What stands above the table of a sweep's results, in Markdown."""
    return f"Report: {linked(report)}\n\nStore: {linked(store)}"
