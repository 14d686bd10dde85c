"""The Prefect flow that writes the report of a sweep again."""

from functools import partial

from prefect import flow

from flows.report.document import write_report
from flows.runtime.artifacts import table_artifact
from flows.runtime.recording import as_task
from flows.views.answer import results_of


@flow(name="report", flow_run_name="{sweep}", validate_parameters=False)
def report_flow(sweep: str, store: str = "store") -> str:
    """Write the report of a sweep that has run on `store` again; returns its path.

    Raises `WrongInput` if the sweep has not run.
    """
    written = str(as_task("report", write_report)(store, sweep))
    table_artifact(f"results-{sweep}", partial(results_of, store, sweep), (), written, store)
    return written
