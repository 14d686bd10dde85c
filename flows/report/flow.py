"""The Prefect flow that writes the report of a sweep again."""

from prefect import flow

from flows.report.document import write_report
from flows.runtime.artifacts import linked, table_artifact
from flows.runtime.recording import as_task
from flows.tables.tables import results_of


@flow(name="report", flow_run_name="{sweep}", validate_parameters=False)
def report_flow(sweep: str, store: str = "store") -> str:
    """Write the report of a sweep that has run on `store` again; returns its path.

    Raises `WrongInput` if the sweep has not run.
    """
    written = str(as_task("report", write_report)(store, sweep))
    results_artifact(store, sweep, written)
    return written


def results_artifact(store: str, sweep: str, report: str) -> None:
    """Add a table of a sweep's best configurations, with links, to the flow run's Prefect page."""
    about = f"Report: {linked(report)}\n\nStore: {linked(store)}"
    table_artifact(f"results-{sweep}", results_of(store, sweep), about)
