"""The Prefect flow that writes the report of a sweep again."""

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows.report.document import write_report
from flows.results.answer import results_of
from flows.runtime.artifacts import linked, table_artifact

write_again = task(write_report, name="report", cache_policy=NO_CACHE)


@flow(name="report", validate_parameters=False)
def report_flow(sweep: str, store: str) -> str:
    """Write the report of a sweep that has run on `store` again; returns its path.

    Raises `WrongInput` if the sweep has not run.
    """
    written = str(write_again(store, sweep))
    results_artifact(store, sweep, written)
    return written


def results_artifact(store: str, sweep: str, report: str) -> None:
    """Add a table of a sweep's best configurations, with links, to the flow run's Prefect page."""
    about = f"Report: {linked(report)}\n\nStore: {linked(store)}"
    table_artifact(f"results-{sweep}", results_of(store, sweep), about)
