"""The report flow: the report of a sweep, written again."""

from __future__ import annotations

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows.artifacts import results_artifact
from flows.report import write_report


@task(name="report", cache_policy=NO_CACHE)
def write_again(store: str, sweep: str) -> str:
    """Write the report; returns its place."""
    return str(write_report(store, sweep))


@flow(name="report", validate_parameters=False)
def report_flow(sweep: str, store: str) -> str:
    """Write the report of a sweep that has run on `store` again; returns its place. Raises
    `WrongInput` if it has not.
    """
    written = write_again(store, sweep)
    results_artifact(store, sweep, written)
    return written
